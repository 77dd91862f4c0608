import { agentConfigSchema } from '@muster/protocol/agent-config';
import { suggestion } from '@muster/protocol/nearest';
import { isMap, isScalar, LineCounter, parse, parseDocument, YAMLParseError } from 'yaml';
import type { z } from 'zod';

export type AgentConfig = z.infer<typeof agentConfigSchema>;

export const defaultConfig: AgentConfig = agentConfigSchema.parse({});

/** The configuration is invalid. The message names each setting and explains how to correct it. */
export class ConfigError extends Error {
  /** @param file the path as the user entered it; null if unknown */
  constructor(faults: readonly string[], file: string | null = null) {
    super(`${file === null ? '' : `${file}: `}${faults.join('; ')}`);
    this.name = 'ConfigError';
  }
}

/**
 * Parses a configuration.
 * @param text YAML; missing settings have their defaults
 * @throws ConfigError
 */
export function parseConfig(text: string): AgentConfig {
  let document: unknown;
  try {
    document = parse(text, { maxAliasCount: 0, uniqueKeys: true, schema: 'core' });
  } catch (error) {
    const line = error instanceof YAMLParseError ? error.linePos?.[0].line : undefined;
    const message = (error as Error).message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '');
    throw new ConfigError([`${line === undefined ? '' : `line ${line}: `}${message}`]);
  }
  const parsed = agentConfigSchema.safeParse(document ?? {});
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.flatMap(faultsOf));
}

/**
 * Returns all errors in a configuration, with line numbers where known.
 * @param file name of the file, used in the messages
 */
export function faultsOfFile(text: string, file: string): string[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: true, schema: 'core', lineCounter: lines });
  if (document.errors.length > 0)
    return document.errors.map(({ message, pos }) => {
      const first = (message.split('\n')[0] as string).replace(/ at line \d+, column \d+:?$/, '');
      return `${file}:${lines.linePos(pos[0]).line}: ${first}`;
    });
  const lineOf = (path: readonly PropertyKey[]): string => {
    let node: unknown = document.contents;
    let line = '';
    for (const key of path) {
      const pair = isMap(node) ? node.items.find((item) => isScalar(item.key) && item.key.value === key) : undefined;
      if (!isScalar(pair?.key) || !pair.key.range) break;
      line = `:${lines.linePos(pair.key.range[0]).line}`;
      node = pair.value;
    }
    return `${file}${line}`;
  };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    return [`${file}: ${(error as Error).message}`];
  }
  const parsed = agentConfigSchema.safeParse(value ?? {});
  if (parsed.success) return [];
  return parsed.error.issues.flatMap((issue) => {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : [null];
    return faultsOf(issue).map((fault, index) => {
      const key = keys[index] ?? null;
      return `${lineOf(key === null ? issue.path : [...issue.path, key])}: ${fault}`;
    });
  });
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join('.');
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(
      (key) => `${[...issue.path, key].join('.')} is not known${suggestion(key, keysAt(issue.path))}`,
    );
  return [`${path || 'the file'} ${inWords(issue)}`];
}

function inWords(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `must be ${typeNames[issue.expected] ?? issue.expected}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big')
    return `must be at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`;
  return `is invalid: ${issue.message}`;
}
const typeNames: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a whole number',
  string: 'text',
  object: 'a mapping of keys to values',
};

function keysAt(path: readonly PropertyKey[]): string[] {
  const at = path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown>)[key], defaultConfig);
  return Object.keys(at as object);
}

/** Lists each difference as `section.key: before → after`. */
export function configChanges(before: AgentConfig, after: AgentConfig): string[] {
  const flat = (config: AgentConfig) =>
    new Map(
      Object.entries(config).flatMap(([section, values]) =>
        Object.entries(values).map(([key, value]) => [`${section}.${key}`, JSON.stringify(value)] as const),
      ),
    );
  const old = flat(before);
  return [...flat(after)]
    .filter(([key, value]) => old.get(key) !== value)
    .map(([key, value]) => `${key}: ${old.get(key)} → ${value}`);
}
