import { readFileSync } from 'node:fs';
import { isMapping } from '@muster/protocol';
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigError } from './faults.ts';

/** A mapping that has not been validated yet. */
export type Raw = Record<string, unknown>;

/** A parsed file. `lineOf` returns the line of a key, or null if the key is missing. */
export interface ReadFile {
  readonly value: Raw;
  readonly lineOf: (path: readonly PropertyKey[]) => number | null;
}

export const noFile: ReadFile = { value: {}, lineOf: () => null };

/** Reads a YAML file. @throws ConfigError if the file cannot be read, or is not a mapping */
export function readFile(file: string): ReadFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`the configuration ${file} cannot be read: ${(error as Error).message}`);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: true, lineCounter: lines });
  if (document.errors.length > 0)
    throw new ConfigError(
      document.errors
        .map(({ message, pos }) => `${file}:${lines.linePos(pos[0]).line}: ${withoutSource(message)}`)
        .join('\n'),
    );
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw new ConfigError(`${file}: ${(error as Error).message}; replace each alias with its value`);
  }
  if (value === null) return noFile;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ConfigError(`${file} must contain a mapping of settings`);
  const lineOf = (path: readonly PropertyKey[]): number | null => {
    let node: unknown = document.contents;
    let found: number | null = null;
    for (const key of path) {
      if (!isMap(node)) break;
      const pair = node.items.find(({ key: name }) => isScalar(name) && String(name.value) === String(key));
      if (!isScalar(pair?.key)) return null;
      found = pair.key.range ? lines.linePos(pair.key.range[0]).line : found;
      node = pair.value;
    }
    return found;
  };
  return { value: value as Raw, lineOf };
}

/** Removes the quoted source line from a parser message, because it may contain a token or a password. */
const withoutSource = (message: string): string =>
  (message.split('\n')[0] as string).replace(/:$/, '').replace(/: ".*"(?= at line \d+, column \d+$|$)/, '');

/**
 * Returns a function that locates a value: `FILE:LINE`, or `configuration` if a variable or flag overrides the file.
 */
export function valueLocator(file: string | undefined, lineOf: ReadFile['lineOf'], over: readonly Raw[]) {
  return (path: readonly PropertyKey[]): string => {
    const elsewhere = over.some((part) => {
      let at: unknown = part;
      for (const key of path) at = isMapping(at) ? at[String(key)] : undefined;
      return at !== undefined;
    });
    if (file === undefined || elsewhere) return 'configuration';
    const line = lineOf(path);
    return line === null ? file : `${file}:${line}`;
  };
}
