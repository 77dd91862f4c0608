import { findAccount, type LoginAccount } from '../accounts/login-account.ts';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import type { CommandResult } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { type ClientContext, lockNumber, lockSeconds, runClient } from './client.ts';
import type { NoServer } from './no-server.ts';

/** The account that owns the cluster. The server trusts this account over the socket. */
export const clusterOwner = 'postgres';

/** The database for statements about roles and databases. */
export const maintenanceDatabase = 'postgres';

/** Quotes text as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Quotes text as an SQL string literal. With `standard_conforming_strings`, the server treats a backslash as an
 * ordinary character.
 */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const arrayOf = (names: readonly string[]): string => `ARRAY[${names.map(literal).join(', ')}]::text[]`;

/**
 * Settings for each session. The last ones keep statements, which include password verifiers, out of the server's log.
 */
const settings = [
  'standard_conforming_strings=on',
  `lock_timeout=${lockSeconds}s`,
  'datestyle=ISO',
  'timezone=UTC',
  'log_statement=none',
  'log_min_error_statement=panic',
  'log_min_duration_statement=-1',
];

/** The server that psql found, and a program that connects to it. */
export interface Server {
  program: string;
  host: string;
  port: string;
}

/**
 * Prints the socket directory, the port, and the version of psql. Before version 10, psql does not support the last
 * variable.
 */
const printServer = '\\echo :HOST :PORT :VERSION_NUM\n';

/**
 * Returns how to connect to the same server again. On Debian, `psql` is a script that finds the cluster, which takes
 * longer than a query, and then executes this program.
 */
export function serverOf(line: string): Server | null {
  const [, host, port, version] = /^(\/\S+) (\d{1,5}) (\d{5,6})$/.exec(line) ?? [];
  if (host === undefined || port === undefined) return null;
  const program = pathOfProgram(`/usr/lib/postgresql/${Math.floor(Number(version) / 10_000)}/bin/psql`);
  return program === null ? null : { program, host, port };
}

/** psql(1) exits with this code if it cannot connect. */
const connectionCode = 2;

/**
 * Executes a query that returns one JSON value. Waits first until no statement of a killed agent is still executing.
 * @param known the server that an earlier query found; null to let psql find it
 * @returns the value and the server, or the reason why no server is available
 * @throws HostFailure if the server refuses the query
 */
export async function readJson<T>(
  database: string,
  query: string,
  context: ClientContext,
  known: Server | null,
): Promise<{ value: T; server: Server | null } | { missing: NoServer }> {
  const owner = await findOwner(context);
  if ('missing' in owner) return owner;
  const text = `${printServer}${guarded(query)}`;
  const result = await psql(database, text, owner.account, context, known);
  if (result.exitCode === connectionCode)
    return {
      missing: {
        kind: 'databases',
        message: `PostgreSQL cannot be reached: ${reasonOf(result, context)}`,
        gone: false,
      },
    };
  if (result.exitCode !== 0) throw new HostFailure(`PostgreSQL: ${reasonOf(result, context)}`);
  if (result.truncated) throw new HostFailure('PostgreSQL has more roles and objects than the agent can read');
  const lines = result.stdout.trimEnd().split('\n');
  return { value: JSON.parse(lines.at(-1) ?? '') as T, server: known ?? serverOf(lines[0] ?? '') };
}

/**
 * Guards a query. It waits for the statements of a killed agent, and calls only built-in functions, because database
 * owners could otherwise replace them with their own.
 */
const guarded = (query: string): string =>
  `SET search_path = pg_catalog;\nSELECT pg_advisory_lock_shared(${lockNumber});\n${query};\n`;

/** Matches names that psql never parses as a connection string and that need no quoting. */
const isPlainName = (name: string): boolean => /^[A-Za-z0-9_-]{1,63}$/.test(name);

/**
 * Executes a query that returns one JSON object in each of several databases, in one psql session.
 * @param queries by database
 * @returns the objects by database. An object is missing if its database's name needs quoting, or if an earlier query
 * failed.
 */
export async function readJsonOfEach<T>(
  queries: ReadonlyMap<string, string>,
  context: ClientContext,
  known: Server | null,
): Promise<Map<string, T>> {
  const plain = [...queries].filter(([name]) => isPlainName(name));
  const [first] = plain;
  const owner = await findOwner(context);
  if (first === undefined || 'missing' in owner) return new Map();
  const text = plain.map(([name, query], i) => `${i === 0 ? '' : `\\connect "${name}"\n`}${guarded(query)}`).join('');
  const { stdout, truncated } = await psql(first[0], text, owner.account, context, known);
  const lines = truncated ? [] : stdout.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return new Map(lines.map((line, i) => [plain[i]?.[0] ?? '', JSON.parse(line) as T]));
}

/**
 * Executes statements, by default in one transaction.
 * @param transaction false for statements that cannot run in a transaction, such as `CREATE DATABASE`
 * @throws HostFailure if the server cannot be reached or refuses a statement
 */
export async function executeStatements(
  database: string,
  statements: readonly string[],
  context: ClientContext,
  transaction = true,
): Promise<void> {
  if (statements.length === 0) return;
  const owner = await findOwner(context);
  if ('missing' in owner) throw new HostFailure(owner.missing.message);
  const all = transaction ? ['BEGIN', ...statements, 'COMMIT'] : statements;
  const text = [`SELECT pg_catalog.pg_advisory_lock(${lockNumber})`, ...all].map((one) => `${one};\n`).join('');
  const result = await psql(database, text, owner.account, context);
  if (result.exitCode !== 0) throw new HostFailure(`PostgreSQL: ${reasonOf(result, context)}`);
}

async function findOwner(context: ClientContext): Promise<{ account: LoginAccount } | { missing: NoServer }> {
  const missing = (message: string) => ({ missing: { kind: 'programs' as const, message, gone: true } });
  if (pathOfProgram('psql') === null)
    return missing('psql is not installed on this machine; declare the package of PostgreSQL before this resource');
  const account = await findAccount(clusterOwner, context.clock);
  return account === null ? missing(`there is no user ${clusterOwner} on this machine`) : { account };
}

const psql = (
  database: string,
  text: string,
  account: LoginAccount,
  context: ClientContext,
  known: Server | null = null,
): Promise<CommandResult> =>
  runClient(
    {
      program: known?.program ?? 'psql',
      args: ['--no-psqlrc', '--quiet', '--no-align', '--tuples-only', '--set=ON_ERROR_STOP=1', '--no-password'],
      environment: {
        ...(known === null ? {} : { PGHOST: known.host, PGPORT: known.port }),
        // Unlike the option, the variable is never parsed as a connection string.
        PGDATABASE: database,
        PGCLIENTENCODING: 'UTF8',
        PGAPPNAME: 'muster',
        PGCONNECT_TIMEOUT: '20',
        PGOPTIONS: settings.map((setting) => `-c ${setting}`).join(' '),
      },
      account,
      text,
    },
    context,
  );

const reasonOf = (result: CommandResult, { limits }: ClientContext): string =>
  failureText(result, 'psql', limits.scriptMs, serverMessage);

/** Returns the server's message without the statement's text, which may contain a verifier. */
export function serverMessage(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) =>
      line
        .replace(/^psql:<stdin>:\d+: /, '')
        .replace(/^psql: error: /, '')
        .trim(),
    )
    .filter((line) => line !== '' && !/^(LINE \d+:|\^|STATEMENT:|CONTEXT:)/.test(line));
  return lines.slice(0, 6).join(' ').slice(0, 800);
}
