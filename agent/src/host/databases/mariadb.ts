import { createHash } from 'node:crypto';
import { HostFailure } from '../failure.ts';
import { failureText } from '../processes/failure-text.ts';
import type { CommandResult } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';
import { type ClientContext, lockNumber, lockSeconds, runClient } from './client.ts';
import type { NoServer } from './no-server.ts';

/** Returns text as an SQL identifier. Backslashes have no meaning in it. */
export const identifier = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/** Returns text as an SQL literal. */
export const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

/** Statements that begin each session. Two of them keep its statements out of the server's logs. */
const beginning = [
  "SET SESSION sql_mode = ''",
  'SET SESSION sql_log_off = 1',
  'SET SESSION slow_query_log = 0',
  `DO GET_LOCK('muster ${lockNumber}', ${lockSeconds})`,
];

/** The client or the server could not connect, or the server refused the account. */
const unreachable = /^ERROR (2\d{3}|1040|1045|1698) /m;

/**
 * Executes queries whose rows have one JSON value each, once no change of a killed agent is executing anymore.
 * @returns the values, or why there is no server that could answer
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

const notInstalled = 'mariadb is not installed on this machine; declare the package of MariaDB before';

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

const sha1 = (data: string | Buffer): Buffer => createHash('sha1').update(data).digest();

/** Returns the hash of mysql_native_password, which the server stores. */
export const nativeHash = (password: string): string => `*${sha1(sha1(password)).toString('hex').toUpperCase()}`;
