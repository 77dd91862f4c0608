import type { ParseArgsConfig } from 'node:util';
import type { Config } from '../config.ts';

export interface Terminal {
  /** What the command has to say; standard output is for an export. */
  tell(line: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: NodeJS.WritableStream;
  readonly now: () => number;
  readonly env: NodeJS.ProcessEnv;
  /** Options of the command itself. */
  readonly given: Given;
  /** The configuration file that was named. */
  readonly configFile: string | null;
}

/** By name, as they were typed. */
export type Given = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

export interface OfflineCommand {
  readonly usage: string;
  /** Names of the words that it takes. */
  readonly words: readonly string[];
  /** Options that only it has. */
  readonly options?: NonNullable<ParseArgsConfig['options']>;
  /** @returns what `--json` prints */
  run(config: Config, dataDir: string, words: readonly string[], terminal: Terminal): Promise<object>;
}
