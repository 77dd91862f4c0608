import { readFileSync } from 'node:fs';
import { isMapping } from '@muster/protocol';
import { z } from 'zod';
import { DatabaseUrl } from './database-url.ts';
import { ConfigError, explain } from './faults.ts';
import { noFile, type Raw, readFile, valueLocator } from './file.ts';
import { oneOf, parseFlags } from './flags.ts';
import { type Config, configSchema, sectionOf } from './schema.ts';

/**
 * Reads the orchestrator's configuration: defaults, then the YAML file, then `MUSTER_*` variables, then flags; later
 * sources override earlier ones. Unknown settings are refused, except in the environment, which other programs share.
 */

export type Source = 'file' | 'environment' | 'flag';

export interface Invocation {
  help: boolean;
  /** Path of the configuration file; null if none was specified. */
  file: string | null;
  config: Config;
  /** Source of every value that is set, by dotted key. */
  sources: Record<string, Source>;
  dataDir: string;
  logFormat: 'text' | 'json';
  logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/**
 * Reads the configuration from all sources.
 * @param args arguments after `muster orchestrator`
 * @param defaultDataDir data directory if none is configured
 * @throws ConfigError with the location and the remedy
 */
export function readInvocation(args: string[], env: NodeJS.ProcessEnv, defaultDataDir: string): Invocation {
  const values = parseFlags(args);
  // Makes `--help` work despite errors in the configuration.
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
  if (!parsed.success) throw new ConfigError(explain(parsed.error, valueLocator(file, lineOf, [fromEnv, fromFlags])));
  const config = parsed.data;
  if ((config.tls_cert === null) !== (config.tls_key === null))
    throw new ConfigError('tls_cert and tls_key must be set together');
  if ((config.bootstrap_key === null) !== (config.bootstrap_username === null))
    throw new ConfigError('bootstrap_key and bootstrap_username must be set together');
  checkRemoteWrite(config.metrics.remote_write);
  if (config.replica.name !== null && config.database_url === null && config.database_url_file === null)
    throw new ConfigError('replica.name needs a PostgreSQL database: set database_url, or remove replica.name');
  checkNats(config);
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

/** @throws ConfigError if a NATS setting requires another setting that is missing */
function checkNats({ nats, replica }: Config): void {
  const { url, credentials_file, ca_file } = nats;
  if (url === null) {
    if (credentials_file !== null) throw new ConfigError('nats.credentials_file needs nats.url: set it as well');
    if (ca_file !== null) throw new ConfigError('nats.ca_file needs nats.url: set it as well');
    return;
  }
  if (replica.name === null)
    throw new ConfigError('nats.url is for replicas: set replica.name as well, or remove nats.url');
  const { protocol, hostname } = new URL(url);
  if (credentials_file !== null && protocol === 'nats:' && !/^(127(\.\d+){3}|\[::1\]|localhost)$/i.test(hostname))
    throw new ConfigError(
      'nats.credentials_file would be sent to another machine without encryption: use a URL that begins with tls:// in nats.url',
    );
  if (ca_file !== null && protocol === 'nats:')
    throw new ConfigError('nats.ca_file needs a URL that begins with tls:// in nats.url');
}

/** @throws ConfigError if settings contradict each other */
function checkRemoteWrite(given: Config['metrics']['remote_write']): void {
  const { url, bearer_token_file, username, password_file } = given;
  const within = (text: string) => new ConfigError(`metrics.remote_write: ${text}`);
  if (bearer_token_file !== null && (username !== null || password_file !== null))
    throw within('set either bearer_token_file, or username and password_file, but not both');
  if ((username === null) !== (password_file === null)) throw within('username and password_file must be set together');
  if (url === null && (bearer_token_file !== null || username !== null))
    throw within('credentials are configured, but url is missing');
  if (url !== null && (bearer_token_file !== null || username !== null) && /^[^/]*\/\/[^/]*@/.test(url))
    throw within('set the username and password either in url or in separate settings, but not both');
}

/** Replaces `database_url_file` with the URL that the file contains. */
function withDatabaseUrl(config: Config): Config {
  const { database_url, database_url_file: file } = config;
  if (file === null) return config;
  if (database_url !== null) throw new ConfigError('set either database_url or database_url_file, but not both');
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new ConfigError(`database_url_file ${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    return { ...config, database_url: new DatabaseUrl(text) };
  } catch (error) {
    throw new ConfigError(`the URL in ${file} ${(error as Error).message}`);
  }
}

/** Returns the errors in a file; empty if an orchestrator can start with it. Ignores variables and flags. */
export function faultsOfFile(file: string): string[] {
  try {
    readInvocation(['--config', file], {}, 'data');
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n');
  }
}

/** Reads variables, such as `MUSTER_DRIFT_INTERVAL` for `drift.interval`. Ignores unknown variables. */
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
    } else if (env[name] !== undefined) found[key] = fromText(schema, env[name]);
  }
  return found;
}

/** Converts the text of a variable to the type of a key in a section. */
function fromText(schema: unknown, text: string): unknown {
  let inner = schema;
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodNullable) inner = inner.unwrap();
  if (inner instanceof z.ZodArray) return listOf(text);
  // The digits of a name must not be converted to a number.
  return inner instanceof z.ZodString ? text : parseText(text);
}

const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** Converts text from flags and variables to the key's type. */
function numeric(key: string, value: unknown, where: string): unknown {
  if (typeof value !== 'string') return value;
  const kind = configSchema.shape[key as keyof Config].unwrap();
  if (kind instanceof z.ZodNumber) {
    if (!/^\d{1,15}$/.test(value)) throw new ConfigError(`${where} must be a whole number, not ${value}`);
    return Number(value);
  }
  if (kind instanceof z.ZodBoolean) return parseText(value);
  if (kind instanceof z.ZodArray) return listOf(value);
  return value;
}

function parseText(text: string): unknown {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (text === 'true' || text === 'false') return text === 'true';
  return text;
}

function merge(under: Raw, over: Raw): Raw {
  const merged: Raw = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    const both = isMapping(below) && isMapping(value);
    merged[key] = both ? merge(below, value) : value;
  }
  return merged;
}

/** Returns the source of every value in a section, by dotted key. */
function sourced(part: Raw, source: Source, above = ''): Record<string, Source> {
  const found: Record<string, Source> = {};
  for (const [key, value] of Object.entries(part)) {
    if (isMapping(value)) Object.assign(found, sourced(value, source, `${above}${key}.`));
    else found[above + key] = source;
  }
  return found;
}
