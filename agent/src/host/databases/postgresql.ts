import { findAccount, type LoginAccount } from '../accounts/login-account.ts';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import type { CommandResult } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { type ClientContext, lockNumber, lockSeconds, runClient } from './client.ts';
import type { NoServer } from './no-server.ts';

/** The account that owns the cluster. The server trusts it on the socket. */
export const clusterOwner = 'postgres';

/** The database for statements about roles and databases. */
export const maintenanceDatabase = 'postgres';

/** Returns text as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Returns text as an SQL literal. A server with `standard_conforming_strings` treats a backslash as any character. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const arrayOf = (names: readonly string[]): string => `ARRAY[${names.map(literal).join(', ')}]::text[]`;

/** Settings of each session. The last ones keep statements, and thus verifiers of passwords, out of the server's log. */
const settings = [
  'standard_conforming_strings=on',
  `lock_timeout=${lockSeconds}s`,
  'datestyle=ISO',
  'timezone=UTC',
  'log_statement=none',
  'log_min_error_statement=panic',
  'log_min_duration_statement=-1',
];

/** psql(1) ends with this code if it cannot connect. */
const connectionCode = 2;

/**
 * Executes a query that returns one JSON value, once no change of a killed agent is executing anymore.
 * @returns the value, or why there is no server that could answer
 * @throws HostFailure if the server refuses the query
 */
export async function readJson<T>(
  database: string,
  query: string,
  context: ClientContext,
): Promise<{ value: T } | { missing: NoServer }> {
  const owner = await findOwner(context);
  if ('missing' in owner) return owner;
  // Owners of databases can create functions that would otherwise be called instead of those of the server.
  const text = `SET search_path = pg_catalog;\nSELECT pg_advisory_lock_shared(${lockNumber});\n${query};\n`;
  const result = await psql(database, text, owner.account, context);
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
  return { value: JSON.parse(result.stdout.trimEnd().split('\n').at(-1) ?? '') as T };
}

/**
 * Executes statements, in one transaction unless `CREATE DATABASE` and the like forbid one.
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
    return missing('psql is not installed on this machine; declare the package of PostgreSQL before');
  const account = await findAccount(clusterOwner, context.clock);
  return account === null ? missing(`there is no user ${clusterOwner} on this machine`) : { account };
}

const psql = (database: string, text: string, account: LoginAccount, context: ClientContext): Promise<CommandResult> =>
  runClient(
    {
      program: 'psql',
      args: ['--no-psqlrc', '--quiet', '--no-align', '--tuples-only', '--set=ON_ERROR_STOP=1', '--no-password'],
      environment: {
        // Unlike the option, the variable is never read as a connection string.
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

/** Returns the server's message without the text of the statement, which may contain a verifier. */
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
