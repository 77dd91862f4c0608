import { executeStatements, literal, readRows } from '../../host/databases/mariadb.ts';
import type { NoServer } from '../../host/databases/no-server.ts';
import type { Database, Machine } from '../provider/provider.ts';

/** The server's users, databases, and privileges, which are read in one session for all resources. */

export interface Server {
  users: Map<string, UserRecord>;
  databases: Map<string, DatabaseRecord>;
  grants: GrantRecord[];
}

export type UserRecord = {
  /**
   * Password hash; null if the user authenticates by other means. For root@localhost, also null unless it can sign in
   * through the socket as well.
   */
  hash: string | null;
  locked: boolean;
  max_user_connections: number;
};

export type DatabaseRecord = { character_set: string; collation: string };

export type GrantRecord = {
  account: string;
  /** Null for global privileges. */
  database: string | null;
  table: string | null;
  privilege: string;
  grantable: boolean;
};

/** Returns the account as the privilege tables spell it. Names contain no quotes. */
export const accountName = (user: string, host: string | null | undefined): string =>
  `'${user}'@'${host ?? 'localhost'}'`;

/** Returns the account as SQL. */
export const accountSql = (user: string, host: string | null | undefined): string =>
  `${literal(user)}@${literal(host ?? 'localhost')}`;

const grants = (table: string, database: string, name: string): string =>
  `SELECT JSON_ARRAY('grant', JSON_OBJECT('account', GRANTEE, 'database', ${database}, 'table', ${name}, 'privilege', PRIVILEGE_TYPE, 'grantable', IS_GRANTABLE)) FROM information_schema.${table} WHERE PRIVILEGE_TYPE <> 'USAGE' OR IS_GRANTABLE = 'YES'`;

const queries = [
  `SELECT JSON_ARRAY('user', CONCAT('''', User, '''@''', Host, ''''), Priv) FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.is_role') IS NULL`,
  "SELECT JSON_ARRAY('database', SCHEMA_NAME, JSON_OBJECT('character_set', DEFAULT_CHARACTER_SET_NAME, 'collation', DEFAULT_COLLATION_NAME)) FROM information_schema.SCHEMATA",
  grants('USER_PRIVILEGES', 'NULL', 'NULL'),
  grants('SCHEMA_PRIVILEGES', 'TABLE_SCHEMA', 'NULL'),
  grants('TABLE_PRIVILEGES', 'TABLE_SCHEMA', 'TABLE_NAME'),
];

const server: Database<{ value: Server } | { missing: NoServer }> = {
  name: 'users and databases of MariaDB',
  async read(machine) {
    const read = await readRows(queries, machine);
    return 'missing' in read ? read : { value: parseRows(read.value) };
  },
};

export function parseRows(lines: readonly string[]): Server {
  const found: Server = { users: new Map(), databases: new Map(), grants: [] };
  for (const line of lines) {
    const [type, ...rest] = JSON.parse(line) as [string, ...unknown[]];
    if (type === 'user') found.users.set(String(rest[0]), userOf(String(rest[0]), rest[1]));
    else if (type === 'database') found.databases.set(String(rest[0]), rest[1] as DatabaseRecord);
    else {
      const grant = rest[0] as Omit<GrantRecord, 'grantable'> & { grantable: string };
      found.grants.push({ ...grant, grantable: grant.grantable === 'YES' });
    }
  }
  return found;
}

/** Reports whether the agent signs in as this account, through the socket. The server ignores the case of hosts. */
export const isAgentAccount = (user: string, host: string | null | undefined): boolean =>
  user === 'root' && (host ?? 'localhost').toLowerCase() === 'localhost';

type Method = { plugin?: unknown; authentication_string?: unknown };

/** @param given the JSON from the table global_priv, which the server returns as an object or as text */
function userOf(account: string, given: unknown): UserRecord {
  const priv = (typeof given === 'string' ? JSON.parse(given) : given) as Record<string, unknown>;
  // In `auth_or`, an empty object stands for the authentication method in the enclosing object.
  const methods = Array.isArray(priv.auth_or)
    ? priv.auth_or.map((one: Method): Method => (one.plugin === undefined ? priv : one))
    : [priv as Method];
  return {
    hash: hashOf(account === accountName('root', 'localhost') ? withoutSocket(methods) : methods),
    locked: priv.account_locked === true,
    max_user_connections: Number(priv.max_user_connections ?? 0),
  };
}

const withoutSocket = (methods: readonly Method[]): readonly Method[] => {
  const left = methods.filter(({ plugin }) => plugin !== 'unix_socket');
  return left.length === methods.length ? [] : left;
};

const hashOf = ([method, ...others]: readonly Method[]): string | null =>
  method?.plugin === 'mysql_native_password' && others.length === 0 && typeof method.authentication_string === 'string'
    ? method.authentication_string
    : null;

export const readServer = (machine: Machine) => machine.database(server);

/**
 * Executes statements, and discards the cached users, databases, and privileges.
 * @throws HostFailure if the server cannot be reached or refuses a statement
 */
export async function change(statements: readonly string[], machine: Machine): Promise<Record<string, never>> {
  try {
    await executeStatements(statements, machine);
  } finally {
    machine.stale(server);
  }
  return {};
}
