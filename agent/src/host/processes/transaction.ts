import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import type { Clock } from '../../../../lib/src/clock.ts';
import { identityOf, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { cleanEnvironment } from '../clean-environment.ts';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import { killProcessGroup, spawnWith, umask } from './run-command.ts';
import { inScope } from './transient-scope.ts';

/**
 * A change that must finish on its own, such as a package transaction. A transaction continues when the agent stops or
 * is killed, and prints to a file that outlives the agent, so that it never writes to a pipe without a reader.
 */
export interface Transaction {
  program: string;
  args: readonly string[];
  /** Standard input, which the program may reopen as `/dev/stdin`. Default: empty. */
  input?: string;
  /** Variables to add to the clean environment. */
  environment: Readonly<Record<string, string>>;
  /** Milliseconds until SIGTERM; SIGKILL follows after `killDelayMs`. */
  timeLimit: number;
  /** Maximum number of bytes of output to keep, counted from the end. */
  outputCap: number;
  /** Part of the transaction's scope name. */
  purpose: string;
  warn(message: string): void;
  /**
   * Called before the program begins its work. If the agent dies before this returns, the program never begins its
   * work.
   */
  started(process: ProcessIdentity): void;
  /** Aborted when the agent stops. The transaction then continues without the agent. */
  stop: AbortSignal;
}

export interface TransactionResult {
  /** Exit code; null if a signal terminated the program. */
  exitCode: number | null;
  signal: string | null;
  /** Output of both streams, interleaved. */
  output: string;
  truncated: boolean;
  timedOut: boolean;
}

/** The agent is stopping while the transaction continues. The next start of the agent determines the result. */
export class LeftRunning extends HostFailure {
  constructor(program: string) {
    super(`${program} was left running because the agent is stopping`);
  }
}

/** Waits for a line from the agent, which confirms that the process is recorded. */
const waitThenRun = 'read -r REPLY <&4 || exit 125; exec 4<&-; exec "$@"';
/** Maximum size of the output file, in bytes. The agent truncates a larger file, so that it cannot fill the disk. */
const maxOutputFile = 4 * 1024 * 1024;
const sizeCheckMs = 1000;
/** Milliseconds between SIGTERM and SIGKILL. */
const killDelayMs = 10_000;

/**
 * Runs a transaction until it finishes.
 * @throws LeftRunning if the agent stops first
 * @throws HostFailure if it cannot be started
 */
export async function runTransaction(transaction: Transaction, clock: Clock): Promise<TransactionResult> {
  if (transaction.stop.aborted) throw new HostFailure('not started because the agent is stopping');
  const program = '/bin/sh';
  const args = ['-c', waitThenRun, 'sh', transaction.program, ...transaction.args];
  return inScope(
    { purpose: transaction.purpose, program, args, warn: transaction.warn },
    (launch) => run(transaction, launch?.program ?? program, launch?.args ?? args, launch?.markFd ?? null, clock),
    ({ timedOut, exitCode, output }) => (timedOut || exitCode === null ? null : output),
  );
}

async function run(
  transaction: Transaction,
  program: string,
  args: readonly string[],
  markFd: number | null,
  clock: Clock,
): Promise<TransactionResult> {
  const output = openUnnamed();
  const input = transaction.input === undefined ? null : openUnnamed();
  try {
    // Positional writes leave the file offset at 0, where the program starts reading.
    if (input !== null) writeAllAt(input, Buffer.from(transaction.input ?? ''));
    return await new Promise<TransactionResult>((resolve, reject) => {
      const child = spawnWith(umask, program, args, {
        cwd: '/',
        env: { ...cleanEnvironment, ...transaction.environment },
        stdio: [input ?? 'ignore', output, output, 'ignore', 'pipe', ...(markFd === null ? [] : [markFd])],
        detached: true,
      });
      let timedOut = false;
      let dropped = false;
      const cancelTimers: (() => void)[] = [];
      const later = (ms: number, action: () => void) => cancelTimers.push(clock.after(ms, action));
      let settled = false;
      const settle = (how: () => void) => {
        // The output file is already closed.
        if (settled) return;
        settled = true;
        for (const cancelTimer of cancelTimers) cancelTimer();
        transaction.stop.removeEventListener('abort', leave);
        how();
      };
      const leave = () => {
        child.unref();
        settle(() => reject(new LeftRunning(transaction.program)));
      };
      const keepSmall = () => {
        if (fstatSync(output).size > maxOutputFile) {
          ftruncateSync(output, 0);
          dropped = true;
        }
        later(sizeCheckMs, keepSmall);
      };
      child.once('error', (error) =>
        settle(() => reject(new HostFailure(`${program} cannot be started: ${error.message}`))),
      );
      child.once('exit', (exitCode, signal) =>
        settle(() => {
          const { text, cut } = tailOf(output, transaction.outputCap);
          resolve({ exitCode, signal, output: text, truncated: cut || dropped, timedOut });
        }),
      );
      if (child.pid === undefined) return;
      const { pid } = child;
      try {
        releaseAfter(child, () => transaction.started(identityOf(pid)));
      } catch (error) {
        return settle(() => reject(error));
      }
      later(transaction.timeLimit, () => {
        timedOut = true;
        signalGroup(pid, 'SIGTERM');
        later(killDelayMs, () => killProcessGroup(pid));
      });
      later(sizeCheckMs, keepSmall);
      transaction.stop.addEventListener('abort', leave);
    });
  } finally {
    closeSync(output);
    if (input !== null) closeSync(input);
  }
}

function writeAllAt(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
}

/** Lets the program begin once `record` has returned. If `record` throws, the program exits. */
function releaseAfter(child: ChildProcess, record: () => void): void {
  const socket = child.stdio[4];
  if (!(socket instanceof Socket)) return;
  socket.on('error', () => {});
  try {
    record();
    socket.write('go\n');
  } finally {
    socket.end();
  }
}

function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

/** Opens an unnamed file in append mode, in memory if possible, because the disk may be full. */
function openUnnamed(directories: readonly string[] = ['/run', '/dev/shm', tmpdir()]): number {
  let failure: unknown = new Error('there is no directory for temporary files');
  for (const directory of directories) {
    const path = `${directory}/.muster-${randomBytes(12).toString('hex')}`;
    try {
      const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
      const fd = openSync(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      unlinkSync(path);
      return fd;
    } catch (error) {
      failure = error;
    }
  }
  throw hostFailure(failure, 'create a file for the input or output of a package transaction');
}

function tailOf(fd: number, cap: number): { text: string; cut: boolean } {
  const { size } = fstatSync(fd);
  const length = Math.min(size, cap);
  const buffer = Buffer.alloc(length);
  const got = length === 0 ? 0 : readSync(fd, buffer, 0, length, size - length);
  return { text: buffer.subarray(0, got).toString('utf8'), cut: size > cap };
}
