import type { Readable } from 'node:stream';
import type { Interrupted } from '../context/context.ts';
import type { TargetOptions } from '../context/profile.ts';
import type { Sink } from '../context/sink.ts';
import type { Environment } from '../directories.ts';
import type { Prompter } from '../keys/prompt.ts';
import type { LocalTerminal } from '../terminal/local-terminal.ts';

/** The process as a verb's surroundings. */
export interface Surroundings {
  env: Environment;
  stdin: Readable & { isTTY?: boolean };
  stdout: Sink;
  stderr: NodeJS.WritableStream & Sink;
  /** Instead of the one that asks on the terminal. */
  prompt?: Prompter;
  /** Unix seconds. */
  now: () => number;
  sleep: (milliseconds: number) => Promise<void>;
  /** As `Context` has them. */
  terminal: () => Promise<LocalTerminal>;
  onInterrupt: (say: Interrupted) => () => void;
  /** Does something before a signal ends the program. @returns what takes that back */
  onEnd: (say: () => void) => () => void;
}

/** What every verb takes. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean;
  verbose?: boolean;
  quiet?: boolean;
  /** Commander's: false when `--no-color` was typed. */
  color?: boolean;
}
