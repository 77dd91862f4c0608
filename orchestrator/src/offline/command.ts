import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config/schema.ts';

export interface Terminal {
  /** Prints a message to standard error, because standard output may contain the export or backup. */
  tell(line: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly now: () => number;
  readonly env: NodeJS.ProcessEnv;
  /** Values of the options that are specific to this command. */
  readonly given: Given;
  /** Path of the configuration file; null without one. */
  readonly configFile: string | null;
}

/** Values by option name. */
export type Given = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

export interface OfflineCommand {
  readonly usage: string;
  /** Names of the positional arguments. */
  readonly words: readonly string[];
  /** Options in addition to the orchestrator's options. */
  readonly options?: NonNullable<ParseArgsConfig['options']>;
  /** Runs the command. @returns the object that `--json` prints */
  run(config: Config, dataDir: string, words: readonly string[], terminal: Terminal): Promise<object>;
}
