import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { BoundedLog } from './bounded-log.ts';
import { afterFairTime } from './fair-time.ts';

/** How a program exited, such as `exited with code 1` or `was killed (SIGKILL)`. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export const describeEnding = ({ code, signal }: Ending): string =>
  signal === null ? `exited with code ${code}` : `was killed (${signal})`;

export class ProgramError extends Error {
  readonly program: Program;
  constructor(program: Program, message: string) {
    super(message);
    this.name = 'ProgramError';
    this.program = program;
  }
}

export interface ProgramOptions {
  name: string;
  command: string;
  args: readonly string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** File to which the output is appended. If the output is large, the file contains only its latest part. */
  logFile?: string;
}

const maxLines = 20_000;
const logBytes = 64 * 1024 * 1024;
const setpriv = '/usr/bin/setpriv';

/**
 * Wraps a command so that the kernel sends SIGTERM to the program when its parent is killed. Needs Linux and
 * util-linux; without them, returns the command unchanged.
 */
export function endingWithStarter(command: string, args: readonly string[]): [command: string, args: string[]] {
  const guarded = process.platform === 'linux' && existsSync(setpriv);
  return guarded ? [setpriv, ['--pdeathsig', 'TERM', '--', command, ...args]] : [command, [...args]];
}

/**
 * A child program that prints JSON lines. It has its own process group, so that Ctrl-C reaches only the parent, which
 * then stops its programs in order.
 */
export class Program {
  readonly name: string;
  readonly pid: number;
  /** Resolves when the program has exited and all its output has been read. Never rejects. */
  readonly ended: Promise<Ending>;
  #ending: Ending | null = null;
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #events: Record<string, unknown>[] = [];
  #listeners: ((event: Record<string, unknown>) => void)[] = [];
  readonly #log: BoundedLog | null;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.#log = options.logFile ? new BoundedLog(options.logFile, logBytes) : null;
    this.#child = spawn(...endingWithStarter(options.command, options.args), {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.pid = this.#child.pid ?? 0;
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream) createInterface({ input: stream }).on('line', (line) => this.#read(line));
    this.ended = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.#read(error.message);
        if (this.#child.pid === undefined) this.#end(resolve, { code: 127, signal: null });
      });
      this.#child.on('close', (code, signal) => this.#end(resolve, { code, signal }));
    });
  }

  #end(resolve: (ending: Ending) => void, ending: Ending): void {
    if (this.#ending) return;
    this.#ending = ending;
    if (this.#log) this.#log.end(() => resolve(ending));
    else resolve(ending);
  }

  #read(line: string): void {
    this.#log?.write(line);
    this.#lines.push(line);
    if (this.#lines.length > maxLines) this.#lines.shift();
    if (!line.startsWith('{')) return;
    try {
      const event = JSON.parse(line);
      if (typeof event.event !== 'string') return;
      this.#events.push(event);
      for (const listener of this.#listeners) listener(event);
    } catch {
      // The line begins like JSON but is other text.
    }
  }

  /** How the program exited; null while it runs. */
  get ending(): Ending | null {
    return this.#ending;
  }

  /** Returns the last lines of the output: log lines and events. */
  lastLines(count: number): string[] {
    return this.#lines.slice(-count);
  }

  events(name: string): Record<string, unknown>[] {
    return this.#events.filter((event) => event.event === name);
  }

  /**
   * Waits until the program has printed `count` events with this name since its start.
   * @param timeoutMs fair time
   * @throws ProgramError if the program exits first, or after the timeout
   */
  async event(name: string, { count = 1, timeoutMs = 60_000 } = {}): Promise<Record<string, unknown>> {
    const seen = () => this.events(name)[count - 1];
    let listener: (() => void) | undefined;
    let cancel = () => {};
    try {
      return await new Promise((resolve, reject) => {
        const look = () => {
          const event = seen();
          if (event) resolve(event);
        };
        listener = look;
        this.#listeners.push(look);
        cancel = afterFairTime(timeoutMs, () =>
          reject(new ProgramError(this, `${this.name} did not print "${name}" within ${timeoutMs / 1000} s`)),
        );
        void this.ended.then((ending) => {
          look();
          reject(new ProgramError(this, `${this.name} ${describeEnding(ending)} before it printed "${name}"`));
        });
        look();
      });
    } finally {
      cancel();
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    }
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#ending === null) this.#child.kill(signal);
  }

  /** Sends SIGTERM, then SIGKILL if the program does not exit within the time limit. */
  async stop(graceMs = 35_000): Promise<Ending> {
    this.kill('SIGTERM');
    const cancel = afterFairTime(graceMs, () => this.kill('SIGKILL'));
    const ending = await this.ended;
    cancel();
    return ending;
  }
}
