import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config/schema.ts';

export interface Terminal {
  /** Prints a message; standard output is reserved for exports. */
  tell(line: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly now: () => number;
  readonly env: NodeJS.ProcessEnv;
  /** Options of the command, as typed. */
  readonly given: Given;
  /** Path of the configuration file; null if the command names none. */
  readonly configFile: string | null;
}

/** By option name, as typed. */
export type Given = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

export interface OfflineCommand {
  readonly usage: string;
  /** Names of the positional arguments. */
  readonly words: readonly string[];
  /** Options that only this command has. */
  readonly options?: NonNullable<ParseArgsConfig['options']>;
  /** @returns the object that `--json` prints */
  run(config: Config, dataDir: string, words: readonly string[], terminal: Terminal): Promise<object>;
}
