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
 * A change of the machine that must come to its end by itself, such as a package transaction: it is not killed when the
 * agent stops or is killed, and what it prints goes to a file that outlasts the agent, so that it never writes to a pipe
 * that nobody reads.
 */
export interface Transaction {
  program: string;
  args: readonly string[];
  /** What it reads from its standard input, which it may also open again as `/dev/stdin`; absent: nothing. */
  input?: string;
  /** Added to the clean environment. */
  environment: Readonly<Record<string, string>>;
  /** Milliseconds after which it is asked to end, and a little later made to. */
  timeLimit: number;
  /** Bytes kept of what it prints, the last ones. */
  outputCap: number;
  /** In the name of its scope. */
  purpose: string;
  warn(message: string): void;
  /** Called as soon as there is a process, and before it does anything: if the agent dies before, nothing is done. */
  started(process: ProcessIdentity): void;
  /** Aborted when the agent stops: the transaction is left to itself. */
  stop: AbortSignal;
}

export interface TransactionResult {
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: string | null;
  /** Both streams, as they came. */
  output: string;
  truncated: boolean;
  timedOut: boolean;
}

/** The agent stops and the transaction goes on by itself: what comes of it is for the next agent to find. */
export class LeftRunning extends HostFailure {
  constructor(program: string) {
    super(`${program} was left running because the agent stops`);
  }
}

/** It waits for a line, which comes once it is on record that there is a process. */
const onceOnRecord = 'read -r REPLY <&4 || exit 125; exec 4<&-; exec "$@"';
/** What is printed beyond this is dropped as it comes, so that no disk is filled. Bytes. */
const outputFileLimit = 4 * 1024 * 1024;
const lookMs = 1000;
/** Between the request to end and the end. Milliseconds. */
const lastWordsMs = 10_000;

/**
 * Runs a transaction to its end.
 * @throws LeftRunning when the agent stops first
 * @throws HostFailure when it cannot be started
 */
export async function runTransaction(transaction: Transaction, clock: Clock): Promise<TransactionResult> {
  if (transaction.stop.aborted) throw new HostFailure('not begun, because the agent stops');
  const program = '/bin/sh';
  const args = ['-c', onceOnRecord, 'sh', transaction.program, ...transaction.args];
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
    // At a position: the program begins to read at the start.
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
      const calls: (() => void)[] = [];
      const later = (ms: number, action: () => void) => calls.push(clock.after(ms, action));
      let settled = false;
      const settle = (how: () => void) => {
        // The file is closed by now.
        if (settled) return;
        settled = true;
        for (const callOff of calls) callOff();
        transaction.stop.removeEventListener('abort', leave);
        how();
      };
      const leave = () => {
        child.unref();
        settle(() => reject(new LeftRunning(transaction.program)));
      };
      const keepSmall = () => {
        if (fstatSync(output).size > outputFileLimit) {
          ftruncateSync(output, 0);
          dropped = true;
        }
        later(lookMs, keepSmall);
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
        tell(child, () => transaction.started(identityOf(pid)));
      } catch (error) {
        return settle(() => reject(error));
      }
      later(transaction.timeLimit, () => {
        timedOut = true;
        signalGroup(pid, 'SIGTERM');
        later(lastWordsMs, () => killProcessGroup(pid));
      });
      later(lookMs, keepSmall);
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

/** Lets it go on once `record` is through; it ends by itself if that throws. */
function tell(child: ChildProcess, record: () => void): void {
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

/** A file without a name; writes append to it. In memory first: the disk may be full. */
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
  throw hostFailure(failure, 'keep the input or output of a package transaction');
}

function tailOf(fd: number, cap: number): { text: string; cut: boolean } {
  const { size } = fstatSync(fd);
  const length = Math.min(size, cap);
  const buffer = Buffer.alloc(length);
  const got = length === 0 ? 0 : readSync(fd, buffer, 0, length, size - length);
  return { text: buffer.subarray(0, got).toString('utf8'), cut: size > cap };
}
