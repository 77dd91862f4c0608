import { hash } from 'node:crypto';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import type { CommandResult } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { type ClientContext, lockNumber, lockSeconds, runClient } from './client.ts';
import type { NoServer } from './no-server.ts';

/** Quotes text as an SQL identifier, in which backslashes have no special meaning. */
export const identifier = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/** Quotes text as an SQL string literal. */
export const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

/** Statements that begin each session. Two of them keep the session's statements out of the server's logs. */
const beginning = [
  "SET SESSION sql_mode = ''",
  'SET SESSION sql_log_off = 1',
  'SET SESSION slow_query_log = 0',
  `DO GET_LOCK('muster ${lockNumber}', ${lockSeconds})`,
];

/** Errors of a client that cannot connect, or whose account the server refuses. */
const unreachable = /^ERROR (2\d{3}|1040|1045|1698) /m;

/**
 * Executes queries that return one JSON value per row. Waits first until no statement of a killed agent is still
 * executing.
 * @returns the values, or the reason why no server is available
 * @throws HostFailure if the server refuses a query
 */
export async function readRows(
  queries: readonly string[],
  context: ClientContext,
): Promise<{ value: string[] } | { missing: NoServer }> {
  if (pathOfProgram('mariadb') === null) return { missing: { kind: 'programs', message: notInstalled, gone: true } };
  const result = await mariadb(queries, context);
  if (result.exitCode !== 0 && unreachable.test(result.stderr))
    return {
      missing: { kind: 'databases', message: `MariaDB cannot be reached: ${reasonOf(result, context)}`, gone: false },
    };
  if (result.exitCode !== 0) throw new HostFailure(`MariaDB: ${reasonOf(result, context)}`);
  if (result.truncated) throw new HostFailure('MariaDB has more accounts and databases than the agent can read');
  return { value: result.stdout.split('\n').filter((line) => line !== '') };
}

/** @throws HostFailure if the server cannot be reached or refuses a statement */
export async function executeStatements(statements: readonly string[], context: ClientContext): Promise<void> {
  if (statements.length === 0) return;
  if (pathOfProgram('mariadb') === null) throw new HostFailure(notInstalled);
  const result = await mariadb(statements, context);
  if (result.exitCode !== 0) throw new HostFailure(`MariaDB: ${reasonOf(result, context)}`);
}

const notInstalled = 'mariadb is not installed on this machine; declare the package of MariaDB before this resource';

const mariadb = (statements: readonly string[], context: ClientContext): Promise<CommandResult> =>
  runClient(
    {
      program: 'mariadb',
      args: [
        ...['--batch', '--raw', '--skip-column-names', '--protocol=socket', '--user=root'],
        ...['--default-character-set=utf8mb4', '--connect-timeout=20'],
      ],
      environment: {},
      account: null,
      text: [...beginning, ...statements].map((one) => `${one};\n`).join(''),
    },
    context,
  );

const reasonOf = (result: CommandResult, { limits }: ClientContext): string =>
  failureText(result, 'the client', limits.scriptMs, serverMessage);

/** Returns the server's message without the statement, which may contain a hash. */
function serverMessage(stderr: string): string {
  const [line = ''] = stderr.split('\n').filter((one) => one.startsWith('ERROR'));
  return line.replace(/near '.*/s, '').slice(0, 600);
}

const sha1 = (data: string | Buffer): Buffer => hash('sha1', data, 'buffer');

/** Returns a password's hash as the server stores it for mysql_native_password. */
export const nativeHash = (password: string): string => `*${sha1(sha1(password)).toString('hex').toUpperCase()}`;
