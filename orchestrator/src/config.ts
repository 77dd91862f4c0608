import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { closest } from 'fastest-levenshtein';
import { isScalar, isMap as isYamlMap, LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import { DatabaseUrl, isDatabaseUrl } from './database-url.ts';

/**
 * The orchestrator's configuration: defaults, then the YAML file, then `MUSTER_*` variables, then flags; later ones
 * win. Unknown keys are refused, except in the environment, which other programs share.
 */

const port = z.number().int().min(0).max(65_535).describe('0 chooses a free port');
const secs = (fallback: number) => z.number().int().min(1).max(315_360_000).default(fallback);

/** An address, or a network such as `10.0.0.0/8`. */
const isNetwork = (text: string): boolean => {
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  // A network of all addresses would let any client choose its address.
  return family !== 0 && (prefix === undefined || (Number(prefix) >= 1 && Number(prefix) <= (family === 4 ? 32 : 128)));
};

function isHttpUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hash === '';
}

const isServer = (text: string): boolean => isOrigin(text) || /^tls:[0-9a-f]{64}$/.test(text);

/** `https://muster.example:4748`: scheme, host and port, and nothing behind them. */
function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (url?.protocol === 'http:' || url?.protocol === 'https:') && url.origin === text.toLowerCase();
}

/** With a path if the proxy adds one, but without credentials, query or fragment. */
function isPublicUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (
    url?.protocol === 'https:' && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  );
}

const remoteWrite = z
  .strictObject({
    url: z
      .string()
      // The message does not repeat the value, which may contain a password.
      .refine(isHttpUrl, 'must look like https://prometheus.example/api/v1/write')
      .nullable()
      .default(null)
      .describe('URL that samples are forwarded to with the Prometheus remote write protocol; null: none'),
    bearer_token_file: z.string().min(1).nullable().default(null).describe('file with a bearer token for it'),
    username: z.string().min(1).max(256).nullable().default(null),
    password_file: z.string().min(1).nullable().default(null),
    deny_private: z.boolean().default(false).describe('refuse loopback and private addresses'),
    queue: z.number().int().min(1000).max(10_000_000).default(100_000).describe('maximum queued samples'),
  })
  .describe('forwarding of samples to a remote time-series database');
const noRemoteWrite = remoteWrite.parse({});

export const configSchema = z.strictObject({
  api_host: z.string().min(1).default('127.0.0.1').describe('address of the API port'),
  api_port: port.default(4748),
  agent_host: z.string().min(1).nullable().default(null).describe('address of the agents’ port; null: all'),
  agent_port: port.default(4747),
  advertised_host: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('name or address under which agents and people reach this orchestrator; null: the hostname'),
  bootstrap_key: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'must be 64 hexadecimal characters, as `muster operator init` prints them')
    .nullable()
    .default(null)
    .describe('public key of the first admin; ignored once an operator exists'),
  bootstrap_username: z.string().nullable().default(null),
  console: z.boolean().default(true).describe('serve the web console at /'),
  pending_capacity: z.number().int().min(1).max(1_000_000).default(100).describe('maximum pending agents'),
  packages_dir: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('folder with the agent’s installation files; null: the files of this release'),
  public_url: z
    .string()
    .refine(isPublicUrl, 'must look like https://muster.example')
    .nullable()
    .default(null)
    .describe('https URL of a proxy in front of the API, as clients reach it'),
  session_token_expiry_secs: secs(3600),
  tls_enabled: z.boolean().default(true),
  tls_cert: z.string().nullable().default(null).describe('PEM file; null: a generated certificate'),
  tls_key: z.string().nullable().default(null),
  trust_proxy_tls: z.boolean().default(false).describe('a proxy terminates TLS for the clients'),
  database_url: z
    .string()
    // The message does not repeat the value, which may contain a password.
    .refine(isDatabaseUrl, 'must look like postgres://user:password@host:5432/database')
    .transform((url) => new DatabaseUrl(url))
    .nullable()
    .default(null)
    .describe('PostgreSQL database; null: SQLite in the data directory'),
  database_url_file: z.string().min(1).nullable().default(null).describe('file that contains database_url'),
  database_pool_size: z
    .number()
    .int()
    .min(1)
    .max(500)
    .default(8)
    .describe('maximum writing connections to PostgreSQL, and as many reading ones'),
  database_statement_timeout: z
    .number()
    .int()
    .min(1)
    .max(3600)
    .default(30)
    .describe('seconds after which PostgreSQL cancels a statement'),
  disk: z
    .strictObject({
      reserve: z
        .number()
        .int()
        .min(0)
        .max(2 ** 50)
        .nullable()
        .default(null)
        .describe('bytes kept free on the disk of the data directory; null: 256 MiB, or 2 % of a small one; 0: none'),
    })
    .default({ reserve: null }),
  agents: z
    .strictObject({
      lost_after_secs: z
        .number()
        .int()
        .min(10)
        .max(86_400)
        .default(120)
        .describe('seconds without a link after which an agent is lost'),
      daily_bytes: z
        .number()
        .int()
        .min(1_048_576)
        .max(2 ** 50)
        .default(268_435_456)
        .describe(
          'maximum bytes per day of one agent’s reports and samples; beyond it reports lose their details, and samples are dropped',
        ),
    })
    .default({ lost_after_secs: 120, daily_bytes: 268_435_456 }),
  trusted_proxies: z
    .array(z.string().refine(isNetwork, 'must be an IP address or a network like 10.0.0.0/8'))
    .max(256)
    .default([])
    .describe('addresses and networks of proxies whose X-Forwarded-For, -Proto and -Host headers are trusted'),
  rates: z
    .strictObject({
      sign_in_per_minute: z.number().int().min(1).max(1_000_000).default(60),
      sign_in_burst: z.number().int().min(1).max(1_000_000).default(30),
      session_per_second: z.number().int().min(1).max(1_000_000).default(1000),
    })
    .default({ sign_in_per_minute: 60, sign_in_burst: 30, session_per_second: 1000 }),
  sign_in: z
    .strictObject({
      require_bound: z
        .boolean()
        .default(false)
        .describe('refuse sign-ins whose signed challenge does not name this server'),
      origins: z
        .array(
          z
            .string()
            .refine(
              isServer,
              'must be an origin like https://muster.example:4748, with nothing behind it, or tls: and 64 hexadecimal characters',
            ),
        )
        .max(64)
        .default([])
        .describe('additional origins of this orchestrator for sign-ins, and keys of proxies: tls: and the SHA-256'),
    })
    .default({ require_bound: false, origins: [] }),
  discovery: z
    .strictObject({ port: z.number().int().min(1).max(65_535).default(4747).describe('UDP port of waiting agents') })
    .default({ port: 4747 }),
  metrics_token: z
    .string()
    .regex(/^[A-Za-z0-9._~+/-]{16,256}$/, 'must be 16 to 256 letters, digits, or . _ ~ + / -')
    .nullable()
    .default(null)
    .describe('token that allows reading /metrics without a sign-in session; null: none'),
  secrets_key_file: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('file with the secrets keys; null: a file in the data directory'),
  secrets_expiry_notice_days: z
    .number()
    .int()
    .min(0)
    .max(3650)
    .default(14)
    .describe('days before its expiry that a secret is announced; 0: when it has expired'),
  metrics: z
    .strictObject({
      poll_interval: secs(60),
      retention: secs(86_400),
      remote_write: remoteWrite.default(noRemoteWrite),
    })
    .default({ poll_interval: 60, retention: 86_400, remote_write: noRemoteWrite }),
  audit: z
    .strictObject({ retention_days: z.number().int().min(0).max(36_500).default(90) })
    .default({ retention_days: 90 }),
  notifications: z
    .strictObject({
      deny_private: z.boolean().default(false).describe('refuse loopback and private addresses'),
      give_up_after: z.number().int().min(60).max(2_592_000).default(86_400),
      retention_days: z.number().int().min(0).max(36_500).default(30),
    })
    .default({ deny_private: false, give_up_after: 86_400, retention_days: 30 }),
  operations: z
    .strictObject({ retention_days: z.number().int().min(0).max(36_500).default(0) })
    .default({ retention_days: 0 })
    .describe('0 keeps them forever'),
  runs: z
    .strictObject({
      max_concurrent: z
        .number()
        .int()
        .min(1)
        .max(100_000)
        .default(1000)
        .describe('maximum agents of one run at the same time; a run may set fewer'),
    })
    .default({ max_concurrent: 1000 }),
  terminals: z
    .strictObject({
      retention_days: z
        .number()
        .int()
        .min(0)
        .max(36_500)
        .default(90)
        .describe('days that ended terminal sessions and their transcripts are kept; 0: forever'),
      reattach_secs: z
        .number()
        .int()
        .min(1)
        .max(86_400)
        .default(60)
        .describe('seconds that a shell waits for its operator to reconnect'),
      idle_limit: z
        .number()
        .int()
        .min(0)
        .max(31_536_000)
        .default(43_200)
        .describe('seconds without input after which a terminal session ends; 0: never'),
      transcript_limit: z
        .number()
        .int()
        .min(65_536)
        .max(1_099_511_627_776)
        .default(268_435_456)
        .describe('maximum bytes of one transcript; the terminal session ends there'),
      record_input: z.boolean().default(false).describe('record input as well, passwords included'),
    })
    .default({
      retention_days: 90,
      reattach_secs: 60,
      idle_limit: 43_200,
      transcript_limit: 268_435_456,
      record_input: false,
    }),
  drift: z
    .strictObject({
      enabled: z.boolean().default(true),
      interval: secs(3600),
      max_concurrent: z.number().int().min(1).max(10_000).default(8),
      skip_recently_applied: z.number().int().min(0).max(315_360_000).default(300),
      retention_days: z.number().int().min(0).max(36_500).default(30),
    })
    .default({ enabled: true, interval: 3600, max_concurrent: 8, skip_recently_applied: 300, retention_days: 30 }),
});
export type Config = z.infer<typeof configSchema>;

/** The source of a value that is not the default. */
export type Source = 'file' | 'environment' | 'flag';

export interface Invocation {
  help: boolean;
  /** The configuration file, if one was named. */
  file: string | null;
  config: Config;
  /** By dotted key, for every value that is set. */
  sources: Record<string, Source>;
  dataDir: string;
  logFormat: 'text' | 'json';
  logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/** Errors in the configuration, for its author. */
export class ConfigError extends Error {}

const flags = {
  config: { type: 'string' },
  'data-dir': { type: 'string' },
  'api-host': { type: 'string' },
  'api-port': { type: 'string' },
  'agent-host': { type: 'string' },
  'agent-port': { type: 'string' },
  'advertised-host': { type: 'string' },
  'bootstrap-key': { type: 'string' },
  'bootstrap-username': { type: 'string' },
  'no-tls': { type: 'boolean' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'database-url': { type: 'string' },
  'database-url-file': { type: 'string' },
  'log-format': { type: 'string' },
  'log-level': { type: 'string' },
  'check-config': { type: 'string' },
  'print-schema': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export const usage = `Usage: muster orchestrator [options]

Runs the orchestrator: the API for operators and the port that agents dial.
Where it is installed as a service, "muster orchestrator init" makes you its first admin.

  --config FILE               YAML file with the keys of docs/operations.md
  --data-dir DIR              where keys and the database are kept
  --api-host HOST             address of the API (127.0.0.1)
  --api-port PORT             port of the API (4748; 0 picks a free one)
  --agent-host HOST           address of the agents' port (all)
  --agent-port PORT           port of the agents (4747; 0 picks a free one)
  --advertised-host HOST      name under which agents and people reach it
  --bootstrap-key HEX         public key of the first admin (see: muster operator init)
  --bootstrap-username NAME   and its name; both ignored once an operator exists
  --no-tls                    plain HTTP for the API, behind a proxy that speaks TLS
  --tls-cert FILE --tls-key FILE   certificate of the API, instead of one made here
  --database-url-file FILE    file with the URL of a PostgreSQL database to use instead of SQLite
  --database-url URL          the URL itself; whoever lists processes sees the password in it
  --log-format text|json      json: nothing but JSON lines on stdout
  --log-level debug|info|warn|error
  --check-config FILE         say what is wrong with a configuration file, and start nothing (2: something is)
  --print-schema              print its JSON Schema, for editors

Every option is also a variable: MUSTER_API_PORT, MUSTER_DATA_DIR, MUSTER_DRIFT_INTERVAL …

Example: muster orchestrator --data-dir ./data --bootstrap-key 3f…9a --bootstrap-username ada
`;

/**
 * True when sign-in tokens would cross a network unencrypted: the API serves plain HTTP to other machines, and no proxy
 * is declared to terminate TLS.
 */
export const exposesTokens = ({ tls_enabled, api_host, trust_proxy_tls }: Config): boolean =>
  !tls_enabled && !trust_proxy_tls && !/^(127(\.\d+){3}|::1|localhost)$/i.test(api_host);

type Raw = Record<string, unknown>;

/**
 * @param args arguments after `muster orchestrator`
 * @param defaultDataDir data directory if none is set
 * @throws ConfigError naming the place and the remedy
 */
export function readInvocation(args: string[], env: NodeJS.ProcessEnv, defaultDataDir: string): Invocation {
  let values: ReturnType<typeof parseArgs<{ options: typeof flags }>>['values'];
  try {
    values = parseArgs({ args, options: flags, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new ConfigError(`${(error as Error).message}${suggestion(args)}`);
  }
  // Show help despite other errors.
  if (values.help === true)
    return {
      help: true,
      file: null,
      config: configSchema.parse({}),
      sources: {},
      dataDir: defaultDataDir,
      logFormat: 'text',
      logLevel: 'info',
    };
  const file = values.config ?? env.MUSTER_CONFIG;
  const { value: fromFile, lineOf } = file === undefined ? noFile : readFile(file);
  const fromEnv = readEnvironment(env);
  const fromFlags: Raw = {};
  for (const [name, value] of Object.entries(values)) {
    const key = name.replaceAll('-', '_');
    if (key in configSchema.shape) fromFlags[key] = numeric(key, value, `--${name}`);
  }
  if (values['no-tls']) fromFlags.tls_enabled = false;
  const parsed = configSchema.safeParse(merge(merge(fromFile, fromEnv), fromFlags));
  if (!parsed.success) throw new ConfigError(explain(parsed.error, placeIn(file, lineOf, [fromEnv, fromFlags])));
  const config = parsed.data;
  if ((config.tls_cert === null) !== (config.tls_key === null))
    throw new ConfigError('tls_cert and tls_key must be given together');
  if ((config.bootstrap_key === null) !== (config.bootstrap_username === null))
    throw new ConfigError('bootstrap_key and bootstrap_username must be given together');
  checkRemoteWrite(config.metrics.remote_write);
  return {
    help: false,
    file: file ?? null,
    config: withDatabaseUrl(config),
    sources: {
      ...(env.MUSTER_DATA_DIR === undefined ? {} : { data_dir: 'environment' as const }),
      ...(values['data-dir'] === undefined ? {} : { data_dir: 'flag' as const }),
      ...sourced(fromFile, 'file'),
      ...sourced(fromEnv, 'environment'),
      ...sourced(fromFlags, 'flag'),
    },
    dataDir: values['data-dir'] ?? env.MUSTER_DATA_DIR ?? defaultDataDir,
    logFormat: oneOf('log-format', values['log-format'] ?? env.MUSTER_LOG_FORMAT ?? 'text', ['text', 'json']),
    logLevel: oneOf('log-level', values['log-level'] ?? env.MUSTER_LOG_LEVEL ?? 'info', [
      'debug',
      'info',
      'warn',
      'error',
    ]),
  };
}

/** @throws ConfigError when keys contradict each other */
function checkRemoteWrite(given: Config['metrics']['remote_write']): void {
  const { url, bearer_token_file, username, password_file } = given;
  const within = (text: string) => new ConfigError(`metrics.remote_write: ${text}`);
  if (bearer_token_file !== null && (username !== null || password_file !== null))
    throw within('give bearer_token_file, or username and password_file, not both');
  if ((username === null) !== (password_file === null))
    throw within('username and password_file must be given together');
  if (url === null && (bearer_token_file !== null || username !== null)) throw within('url is missing');
  if (url !== null && (bearer_token_file !== null || username !== null) && /^[^/]*\/\/[^/]*@/.test(url))
    throw within('the url already contains a user: give its name and password there or in separate keys, not both');
}

/** Fills in the database URL, from its file if needed. */
function withDatabaseUrl(config: Config): Config {
  const { database_url, database_url_file: file } = config;
  if (file === null) return config;
  if (database_url !== null) throw new ConfigError('give database_url or database_url_file, not both');
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ConfigError(`database_url_file ${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    return { ...config, database_url: new DatabaseUrl(text) };
  } catch (error) {
    throw new ConfigError(`what ${file} holds ${(error as Error).message}`);
  }
}

/** Separates positional arguments from options and their values. */
export function wordsOf(args: readonly string[]): { words: string[]; rest: string[] } {
  const { tokens } = parseArgs({
    args: [...args],
    options: flags,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const at = new Map(tokens.flatMap((token) => (token.kind === 'positional' ? [[token.index, token.value]] : [])));
  return { words: [...at.values()], rest: args.filter((_, index) => !at.has(index)) };
}

/** Separates a command's own options, with their values, from the orchestrator's. */
export function optionsOf(args: readonly string[], options: NonNullable<ParseArgsConfig['options']>) {
  const { tokens, values } = parseArgs({
    args: [...args],
    options: { ...flags, ...options },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const taken = new Set<number>();
  let fault: string | null = null;
  for (const token of tokens) {
    if (token.kind !== 'option' || !(token.name in options)) continue;
    taken.add(token.index);
    if (options[token.name]?.type !== 'string') continue;
    if (token.value === undefined) fault = `${token.rawName} needs a value`;
    else if (!token.inlineValue) taken.add(token.index + 1);
  }
  const own = Object.fromEntries(Object.entries(values).filter(([name]) => name in options));
  return { values: own, fault, rest: args.filter((_, index) => !taken.has(index)) };
}

function oneOf<const T extends string>(name: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === given);
  if (found === undefined) throw new ConfigError(`--${name} must be ${allowed.join(' or ')}, not ${given}`);
  return found;
}

function suggestion(args: readonly string[]): string {
  const unknown = args.find((arg) => arg.startsWith('--') && !((arg.slice(2).split('=')[0] as string) in flags));
  return unknown === undefined ? '' : `\nDid you mean --${closest(unknown.slice(2), Object.keys(flags))}?`;
}

/** The parsed file, and the line of each key; null if the key is missing. */
interface ReadFile {
  readonly value: Raw;
  readonly lineOf: (path: readonly PropertyKey[]) => number | null;
}

const noFile: ReadFile = { value: {}, lineOf: () => null };

function readFile(file: string): ReadFile {
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
    throw new ConfigError(`${file}: ${(error as Error).message}; write the value out instead`);
  }
  if (value === null) return noFile;
  if (typeof value !== 'object' || Array.isArray(value)) throw new ConfigError(`${file} must hold a mapping of keys`);
  const lineOf = (path: readonly PropertyKey[]): number | null => {
    let node: unknown = document.contents;
    let found: number | null = null;
    for (const key of path) {
      if (!isYamlMap(node)) break;
      const pair = node.items.find(({ key: name }) => isScalar(name) && String(name.value) === String(key));
      if (!isScalar(pair?.key)) return null;
      found = pair.key.range ? lines.linePos(pair.key.range[0]).line : found;
      node = pair.value;
    }
    return found;
  };
  return { value: value as Raw, lineOf };
}

/** The parser's message without the source line that it quotes: the line may contain a token or a password. */
const withoutSource = (message: string): string =>
  (message.split('\n')[0] as string).replace(/:$/, '').replace(/: ".*"(?= at line \d+, column \d+$|$)/, '');

/** The place of an invalid value: the line in the file, unless a variable or flag overrides it. */
function placeIn(file: string | undefined, lineOf: ReadFile['lineOf'], over: readonly Raw[]) {
  return (path: readonly PropertyKey[]): string => {
    const elsewhere = over.some((part) => {
      let at: unknown = part;
      for (const key of path) at = isMap(at) ? at[String(key)] : undefined;
      return at !== undefined;
    });
    if (file === undefined || elsewhere) return 'configuration';
    const line = lineOf(path);
    return line === null ? file : `${file}:${line}`;
  };
}

/** All errors in a file, one per line; empty when an orchestrator would start with it. Ignores variables and flags. */
export function faultsOfFile(file: string): string[] {
  try {
    readInvocation(['--config', file], {}, 'data');
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n');
  }
}

/** The JSON Schema of the configuration file, for editors. */
export const configSchemaId = '/schemas/orchestrator.json';
export function configJsonSchema(): object {
  const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' });
  return { ...schema, $id: configSchemaId, title: 'Configuration of a Muster orchestrator' };
}

/** `MUSTER_DRIFT_INTERVAL` is `drift.interval`. Unknown variables with the prefix are ignored. */
function readEnvironment(env: NodeJS.ProcessEnv): Raw {
  const found: Raw = {};
  for (const [key, schema] of Object.entries(configSchema.shape)) {
    const name = `MUSTER_${key.toUpperCase()}`;
    const nested = schema.unwrap();
    if (nested instanceof z.ZodObject) {
      const part = readSection(env, name, nested.shape);
      if (Object.keys(part).length > 0) found[key] = part;
    } else if (env[name] !== undefined) found[key] = numeric(key, env[name], name);
  }
  return found;
}

function readSection(env: NodeJS.ProcessEnv, above: string, shape: Readonly<Record<string, unknown>>): Raw {
  const found: Raw = {};
  for (const [key, schema] of Object.entries(shape)) {
    const name = `${above}_${key.toUpperCase()}`;
    const nested = sectionOf(schema);
    if (nested !== null) {
      const part = readSection(env, name, nested);
      if (Object.keys(part).length > 0) found[key] = part;
    } else if (env[name] !== undefined) found[key] = isText(schema) ? env[name] : plain(env[name]);
  }
  return found;
}

/** Keeps a name of digits as text. */
function isText(schema: unknown): boolean {
  let inner = schema;
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodNullable) inner = inner.unwrap();
  return inner instanceof z.ZodString;
}

/** The keys of a section; null for a key with a value. */
function sectionOf(schema: unknown): Readonly<Record<string, unknown>> | null {
  const inner = schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  return inner instanceof z.ZodObject ? inner.shape : null;
}

/** Converts text of flags and variables to the type of the key. */
function numeric(key: string, value: unknown, where: string): unknown {
  if (typeof value !== 'string') return value;
  const kind = configSchema.shape[key as keyof Config].unwrap();
  if (kind instanceof z.ZodNumber) {
    if (!/^\d{1,15}$/.test(value)) throw new ConfigError(`${where} must be a whole number, not ${value}`);
    return Number(value);
  }
  if (kind instanceof z.ZodBoolean) return plain(value);
  if (kind instanceof z.ZodArray) return value.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
  return value;
}

function plain(text: string): unknown {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text;
}

function merge(under: Raw, over: Raw): Raw {
  const merged: Raw = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    const both = isMap(below) && isMap(value);
    merged[key] = both ? merge(below, value) : value;
  }
  return merged;
}

/** The source of every value of a section, by dotted key. */
function sourced(part: Raw, source: Source, above = ''): Record<string, Source> {
  const found: Record<string, Source> = {};
  for (const [key, value] of Object.entries(part)) {
    if (isMap(value)) Object.assign(found, sourced(value, source, `${above}${key}.`));
    else found[above + key] = source;
  }
  return found;
}

const isMap = (value: unknown): value is Raw => typeof value === 'object' && value !== null && !Array.isArray(value);

function explain(error: z.ZodError, where: (path: readonly PropertyKey[]) => string): string {
  return error.issues
    .map((issue) => {
      const path = issue.path.join('.');
      if (issue.code !== 'unrecognized_keys') return `${where(issue.path)}: ${path}: ${issue.message}`;
      let section: Readonly<Record<string, unknown>> | null = configSchema.shape;
      for (const key of issue.path) section = sectionOf(section?.[key as string]);
      const known = Object.keys(section ?? {});
      return issue.keys
        .map((key) => {
          const name = [...issue.path, key].join('.');
          return `${where([...issue.path, key])}: ${name} is not a key there is${known.length > 0 ? `; did you mean ${closest(key, known)}?` : ''}`;
        })
        .join('\n');
    })
    .join('\n');
}
