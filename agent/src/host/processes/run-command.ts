import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import type { Clock } from '../../../../lib/src/clock.ts';
import { identityOf, type ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { cleanEnvironment } from '../clean-environment.ts';
import { errnoOf, HostFailure } from '../failure.ts';
import { type Stdio, withoutInherited } from './inherited-files.ts';
import { type OutputPipe, openPipes } from './output-pipe.ts';
import { inScope, type ScopedLaunch } from './transient-scope.ts';

export interface Command {
  program: string;
  args: readonly string[];
  /** Milliseconds after which the whole process group is killed. */
  timeLimit: number;
  /** Maximum number of bytes of stdout and of stderr to keep: the first half and the last half. The rest is dropped. */
  outputCap: number;
  /**
   * An open file for the program's file descriptor 3. Descriptor 4 is then a socket that receives a line once `started`
   * has returned. If this process is killed earlier, the program reads end of file and must exit without doing
   * anything, so that no unrecorded program does any work.
   */
  scriptFd?: number;
  /** Variables to add to the clean environment. */
  environment?: Readonly<Record<string, string>>;
  /** Called as soon as the process exists. */
  started?: (process: ProcessIdentity) => void;
  /** Runs the program in its own transient scope on systemd machines. Calls `warn` if systemd refuses the scope. */
  scope?: { purpose: string; warn(message: string): void };
  /** Called with output as it arrives. The bytes are valid only during the call. */
  printed?: (stream: 'stdout' | 'stderr', piece: Buffer) => void;
}

export interface CommandResult {
  /** Exit code; null if a signal terminated the program. */
  exitCode: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  truncated: boolean;
  timedOut: boolean;
}

/** Context for running programs: a clock for time limits, and a record of processes. */
export interface Runner {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
}

/**
 * Runs a program whose messages are in English.
 * @param limits see {@link Command}
 * @throws HostFailure if it cannot be started
 */
export const runInEnglish = (
  program: string,
  args: readonly string[],
  { environment, ...limits }: Pick<Command, 'timeLimit' | 'outputCap' | 'environment' | 'printed'>,
  runner: Runner,
): Promise<CommandResult> =>
  runCommand(
    {
      ...limits,
      program,
      args,
      environment: { ...environment, LC_ALL: 'C' },
      started: (process) => runner.startedProcess(process),
    },
    runner.clock,
  );

/** Milliseconds for which output is read after the program has exited. */
const drainMs = 100;

/** Umask of started programs, independent of the agent's umask. */
export const umask = 0o022;

/**
 * Runs a program in its own process group, in `/` and with empty input, and waits until it exits. Does not wait for its
 * background processes, discards their output, and kills them only at the time limit.
 * @throws HostFailure if it cannot be started
 */
export async function runCommand(command: Command, clock: Clock): Promise<CommandResult> {
  const { scope, program, args } = command;
  if (scope === undefined) return run(command, clock, null);
  return inScope(
    { ...scope, program, args },
    (launch) => (launch === null ? run(command, clock, null) : run(launched(command, launch), clock, launch.markFd)),
    ({ timedOut, exitCode, stderr }) => (timedOut || exitCode === null ? null : stderr),
  );
}

function launched({ printed, ...command }: Command, { program, args, hasStarted }: ScopedLaunch): Command {
  if (printed === undefined) return { ...command, program, args };
  // Shows only the output of the program, not that of systemd-run.
  return { ...command, program, args, printed: (stream, piece) => hasStarted() && printed(stream, piece) };
}

/** @param markFd passed as file descriptor 5 */
async function run(command: Command, clock: Clock, markFd: number | null): Promise<CommandResult> {
  const pipes = await openPipes(2);
  const [out, err] = pipes as [OutputPipe, OutputPipe];
  let cancelTimeout = () => {};
  const forScript = command.scriptFd === undefined ? [] : [command.scriptFd, 'pipe' as const];
  const ignored = 'ignore' as const;
  return new Promise<CommandResult>((resolve, reject) => {
    const child = spawnWith(umask, command.program, command.args, {
      cwd: '/',
      env: { ...cleanEnvironment, ...command.environment },
      stdio: [
        'ignore',
        out.writeFd,
        err.writeFd,
        ...(markFd === null ? forScript : [forScript[0] ?? ignored, forScript[1] ?? ignored, markFd]),
      ],
      detached: true,
    });
    for (const pipe of pipes) pipe.started();
    // Must be the first listener, because an unhandled `error` event would terminate this process.
    child.once('error', (error) => {
      if (errnoOf(error) === 'ENOENT') reject(new HostFailure(`${command.program} is not installed on this machine`));
      else reject(new HostFailure(`${command.program} cannot be started: ${error.message}`));
    });
    const stdout = new CappedText(command.outputCap);
    const stderr = new CappedText(command.outputCap);
    out.output.on('data', (piece: Buffer) => {
      stdout.add(piece);
      command.printed?.('stdout', piece);
    });
    err.output.on('data', (piece: Buffer) => {
      stderr.add(piece);
      command.printed?.('stderr', piece);
    });
    try {
      if (child.pid !== undefined) command.started?.(identityOf(child.pid));
      socketOf(child)?.write('go\n');
    } finally {
      socketOf(child)?.end();
    }
    let timedOut = false;
    cancelTimeout = clock.after(command.timeLimit, () => {
      timedOut = true;
      killGroup(child);
    });
    let ended = false;
    const end = (exitCode: number | null, signal: string | null) => {
      if (ended) return;
      ended = true;
      cancelTimeout();
      for (const pipe of pipes) pipe.dispose();
      resolve({
        exitCode,
        signal,
        stdout: stdout.text(),
        stderr: stderr.text(),
        truncated: stdout.cut || stderr.cut,
        timedOut,
      });
    };
    child.once('exit', (exitCode, signal) => {
      if (timedOut) killGroup(child);
      let open = pipes.length;
      for (const { output } of pipes) {
        const ended = () => {
          if (--open === 0) end(exitCode, signal);
        };
        if (output.readableEnded || output.destroyed) ended();
        else output.once('close', ended);
      }
      // Waits one more event-loop turn, because output may have waited in the pipes while this process was busy.
      clock.after(drainMs, () => void setImmediate(() => end(exitCode, signal)));
    });
  }).catch((error: unknown) => {
    cancelTimeout();
    for (const pipe of pipes) {
      pipe.started();
      pipe.output.destroy();
    }
    throw error;
  });
}

/** Returns the agent's end of the child's file descriptor 4; null if there is none. */
function socketOf(child: ChildProcess): Socket | null {
  // `stdio` is missing if the child did not start because this process has too many open files.
  const socket = (child.stdio as ChildProcess['stdio'] | undefined)?.[4];
  if (!(socket instanceof Socket)) return null;
  // The program may exit before it reads.
  if (socket.listenerCount('error') === 0) socket.on('error', () => {});
  return socket;
}

/** Spawns with a umask. The umask is process-wide, so it is restored synchronously. */
export function spawnWith(
  mask: number,
  program: string,
  args: readonly string[],
  options: Omit<SpawnOptions, 'stdio'> & { stdio: readonly Stdio[] },
): ChildProcess {
  const before = process.umask(mask);
  try {
    return spawn(program, args, { ...options, stdio: withoutInherited(options.stdio) });
  } finally {
    process.umask(before);
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid !== undefined) killProcessGroup(child.pid);
}

/** @param leader the PID of the group's first process, as started by `runCommand` */
export function killProcessGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // The group has no processes left.
  }
}

/** Keeps the first half and the last half of a stream of any length. */
class CappedText {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  #dropped = 0;

  constructor(cap: number) {
    this.#half = Math.floor(cap / 2);
  }

  get cut(): boolean {
    return this.#dropped > 0;
  }

  add(piece: Buffer): void {
    const free = this.#half - this.#headLength;
    if (free > 0) {
      this.#head.push(piece.subarray(0, free));
      this.#headLength += Math.min(free, piece.length);
    }
    if (piece.length <= free) return;
    this.#tail.push(free > 0 ? piece.subarray(free) : piece);
    this.#tailLength += piece.length - Math.max(free, 0);
    if (this.#tailLength > this.#half * 2) this.#trim();
  }

  text(): string {
    this.#trim();
    const head = Buffer.concat(this.#head).toString('utf8');
    const tail = Buffer.concat(this.#tail).toString('utf8');
    if (this.#dropped === 0) {
      // Decodes both halves together, so that a character across the boundary stays intact.
      return Buffer.concat([...this.#head, ...this.#tail]).toString('utf8');
    }
    return `${head}\n[… ${this.#dropped} bytes cut …]\n${tail}`;
  }

  #trim(): void {
    const excess = this.#tailLength - this.#half;
    if (excess <= 0) return;
    this.#tail = [Buffer.from(Buffer.concat(this.#tail).subarray(excess))];
    this.#tailLength = this.#half;
    this.#dropped += excess;
  }
}
