import { suggestion } from '@muster/protocol/nearest';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';

/** The agent's configuration file. Every key may be absent. */
const configSchema = z.strictObject({
  remote_terminal: z
    .strictObject({
      enabled: z.boolean().default(false),
      /** Empty: the login shell of the user. */
      shell: z.string().max(4096).default(''),
      allow_operator_shell_override: z.boolean().default(false),
      max_sessions: z.int().min(1).max(10_000).default(100),
      /** Empty: the one that the agent runs as. */
      user: z
        .string()
        .max(256)
        .regex(/^([A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?)?$/, 'not the name of a user')
        .default(''),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      enabled: z.boolean().default(true),
      /** Seconds. */
      collection_interval: z.int().min(1).max(86_400).default(30),
    })
    .prefault({}),
  scripts: z
    .strictObject({
      /** Seconds for the `apply` or `undo` of one; what is not done by then is ended. */
      time_limit: z.int().min(1).max(86_400).default(1800),
    })
    .prefault({}),
  packages: z
    .strictObject({
      /** Seconds for one transaction; one that is not through by then is asked to end. */
      time_limit: z.int().min(1).max(86_400).default(3600),
      /** Seconds that one waits while another program holds the lock of apt or dpkg. */
      lock_timeout: z.int().min(0).max(86_400).default(600),
    })
    .prefault({}),
  discovery: z
    .strictObject({
      /** Null: only an agent that was started without an address lets itself be found. */
      enabled: z.boolean().nullable().default(null),
      /** UDP. */
      port: z.int().min(1).max(65_535).default(4747),
    })
    .prefault({}),
});
export type AgentConfig = z.infer<typeof configSchema>;

export const defaultConfig: AgentConfig = configSchema.parse({});

/** The file does not hold a configuration; the message names each place and what to do. */
export class ConfigError extends Error {
  /** @param file as it was named; null while only the text is known */
  constructor(faults: readonly string[], file: string | null = null) {
    super(`${file === null ? '' : `${file}: `}${faults.join('; ')}`);
    this.name = 'ConfigError';
  }
}

/**
 * @param text YAML; nothing, or only comments, are all defaults
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
  const parsed = configSchema.safeParse(document ?? {});
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.flatMap(faultsOf));
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const place = issue.path.join('.');
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(
      (key) => `${[...issue.path, key].join('.')} is not known${suggestion(key, keysAt(issue.path))}`,
    );
  return [`${place || 'the file'} ${inWords(issue)}`];
}

/** What must be there, in words of the person who writes the file. */
function inWords(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `must be ${things[issue.expected] ?? issue.expected}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big')
    return `must be at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`;
  return `is not right: ${issue.message}`;
}
const things: Readonly<Record<string, string>> = {
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

/** Every value that differs, as `section.key: before → after`. */
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
