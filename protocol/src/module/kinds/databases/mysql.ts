import { boolean, choice, formatted, integer, list, text } from '../field.ts';
import * as format from '../format.ts';
import { type CombinationFault, defineKind, ensure, joined } from '../kind.ts';

const database = (description: string) => formatted(description, format.mysqlName);
const user = (description: string) => formatted(description, format.mysqlUser);
const host = formatted('Host from which the user connects; % for any', format.mysqlHost, { whenAbsent: 'localhost' });

const accountOf = (name: unknown, at: unknown): string => joined(name, '@', at ?? 'localhost');

/** Refuses fields of root@localhost that could lock out the agent, which signs in as this account. */
function agentAccountFaults({ ensure, ...body }: Readonly<Record<string, unknown>>): CombinationFault[] {
  const message =
    'cannot be declared for root@localhost, the account that the agent signs in as; declare only the password';
  const fields = ['locked', 'max_user_connections'].filter((name) => body[name] !== undefined && body[name] !== null);
  return [...(ensure === 'absent' ? ['ensure'] : []), ...fields].map((name) => ({ path: [name], message }));
}

export const mysqlKinds = {
  'mysql-user': defineKind({
    description: 'A MariaDB user',
    platforms: ['linux'],
    example: 'name: shop\nhost: localhost\npassword: "${{ secrets.shop_password }}"',
    required: {
      name: formatted('Name of the user; "" for the anonymous user', format.mysqlUserOrAnonymous),
    },
    optional: {
      host,
      password: text(
        'Password; only its hash leaves the agent',
        format.allOf(format.notEmpty, format.oneLine, format.noNul),
      ),
      password_hash: text(
        'Hash of the password, as SELECT PASSWORD() returns, in place of the password',
        format.mysqlPasswordHash,
      ),
      locked: boolean('Whether signing in is disabled'),
      max_user_connections: integer('Number of simultaneous connections; 0 for no limit', 0, 1_000_000),
      ensure,
    },
    identifiedBy: ({ host }) => (host == null ? ['name'] : ['name', 'host']),
    identity: ({ name, host }) => accountOf(name, host),
    faults: (body) =>
      body.name === 'root' && (body.host ?? 'localhost') === 'localhost' ? agentAccountFaults(body) : [],
    exclusive: [['password', 'password_hash']],
    sensitive: ['password', 'password_hash'],
  }),
  'mysql-database': defineKind({
    description: 'A MariaDB database',
    platforms: ['linux'],
    example: 'name: shop\ncharacter_set: utf8mb4\ncollation: utf8mb4_unicode_ci',
    required: { name: database('Name of the database') },
    optional: {
      character_set: formatted('Character set of new tables', format.mysqlCharacterSet),
      collation: formatted('Collation of new tables', format.mysqlCharacterSet),
      force: boolean('Whether the database may be dropped with its data, by `ensure: absent` or by removal'),
      ensure,
    },
  }),
  'mysql-grant': defineKind({
    description: 'The privileges of a MariaDB user on everything, a database, or a table',
    platforms: ['linux'],
    example: 'user: shop\ndatabase: shop\nprivileges: [SELECT, INSERT, UPDATE, DELETE]',
    required: {
      user: user('User that has the privileges'),
      database: database('Database; "*" for all, which includes privileges on the server'),
    },
    optional: {
      host,
      table: database('Table; default: all tables of the database'),
      privileges: list(
        'All privileges of the user there; others are revoked',
        choice('A privilege', [
          ...['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'REFERENCES', 'INDEX', 'ALTER', 'TRIGGER'],
          ...['CREATE VIEW', 'SHOW VIEW', 'CREATE TEMPORARY TABLES', 'LOCK TABLES', 'CREATE ROUTINE', 'ALTER ROUTINE'],
          ...['EXECUTE', 'EVENT', 'DELETE HISTORY', 'PROCESS', 'RELOAD', 'SHOW DATABASES', 'FILE', 'SUPER'],
          ...['REPLICATION SLAVE', 'BINLOG MONITOR', 'CREATE USER'],
        ] as ['SELECT', ...string[]]),
        { atLeast: 1 },
      ),
      grant_option: boolean('Whether the user may grant the privileges to others'),
      ensure,
    },
    identifiedBy: ({ host, table }) => [
      ...['user', 'database'],
      ...(host == null ? [] : ['host']),
      ...(table == null ? [] : ['table']),
    ],
    // Names of databases and tables contain no "/".
    identity: ({ user, host, database, table }) =>
      joined(accountOf(user, host), '/', table == null ? database : `${database}/${table}`),
    presentNeeds: ['privileges'],
  }),
};
