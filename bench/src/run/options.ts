import { parseArgs } from 'node:util';
import { endEverythingAtExit } from './lifetime.ts';

type Texts = Readonly<Record<string, string | null>>;

interface OptionNames<N extends string, T extends Texts, F extends string> {
  /** Numeric options with their defaults without and with `--smoke`. */
  numbers: Record<N, readonly [usual: number, smoke: number]>;
  /** Text options with their defaults; null for no value. */
  texts?: T;
  /** Names of Boolean options. */
  flags?: readonly F[];
}

type Options<N extends string, T extends Texts, F extends string> = Record<N, number> & {
  [K in keyof T]: T[K] extends null ? string | null : string;
} & Record<F | 'smoke' | 'json', boolean>;

/**
 * Parses a bench's options, and ensures that started processes are killed and temporary files removed when this process
 * exits. `--smoke` selects the smallest sizes, which take seconds and only prove that the bench works. `--json` adds a
 * line for scripts.
 * @throws Error if an option is unknown or a value is not a number
 */
export function benchOptions<N extends string, T extends Texts = Record<never, never>, F extends string = never>({
  numbers,
  texts,
  flags = [],
}: OptionNames<N, T, F>): Options<N, T, F> {
  const options: Record<string, { type: 'string' | 'boolean' }> = {
    smoke: { type: 'boolean' },
    json: { type: 'boolean' },
  };
  for (const name of [...Object.keys(numbers), ...Object.keys(texts ?? {})]) options[name] = { type: 'string' };
  for (const flag of flags) options[flag] = { type: 'boolean' };
  const { values } = parseArgs({ options });
  const found: Record<string, number | string | boolean | null> = {};
  for (const flag of ['smoke', 'json', ...flags]) found[flag] = values[flag] === true;
  for (const [name, [fallback, smoke]] of Object.entries<readonly [number, number]>(numbers)) {
    const given = values[name] === undefined ? null : Number(values[name]);
    if (given !== null && !Number.isFinite(given)) throw new Error(`--${name} requires a number: ${values[name]}`);
    found[name] = given ?? (found.smoke ? smoke : fallback);
  }
  for (const [name, fallback] of Object.entries(texts ?? {})) found[name] = (values[name] as string) ?? fallback;
  endEverythingAtExit();
  return found as Options<N, T, F>;
}
