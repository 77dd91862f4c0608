import type { Readable } from 'node:stream';
import type { Interrupted } from '../context/context.ts';
import type { TargetOptions } from '../context/profile.ts';
import type { Sink } from '../context/sink.ts';
import type { Environment } from '../directories.ts';
import type { Prompter } from '../keys/prompt.ts';
import type { LocalTerminal } from '../terminal/local-terminal.ts';

/** The parts of the process that the program uses. */
export interface Surroundings {
  env: Environment;
  stdin: Readable & { isTTY?: boolean };
  stdout: Sink;
  stderr: NodeJS.WritableStream & Sink;
  /** Replaces the terminal's prompter in tests. */
  prompt?: Prompter;
  /** Unix seconds. */
  now: () => number;
  sleep: (milliseconds: number) => Promise<void>;
  /** Same as `terminal` in `Context`. */
  terminal: () => Promise<LocalTerminal>;
  onInterrupt: (say: Interrupted) => () => void;
  /** Calls `say` before a signal terminates the program. @returns a function that removes the handler */
  onEnd: (say: () => void) => () => void;
}

/** Options that every command has. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean;
  verbose?: boolean;
  quiet?: boolean;
  /** False with `--no-color`, as commander sets it. */
  color?: boolean;
}
