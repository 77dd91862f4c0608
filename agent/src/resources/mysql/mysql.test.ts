import { describe, expect, test } from 'vitest';
import { identifier, literal, nativeHash } from '../../host/databases/mariadb.ts';
import { databaseStatement, diffDatabase, diffDatabaseRemoval } from './database.ts';
import { diffGrant, diffGrantRemoval, grantStatements } from './grant.ts';
import { parseRows } from './server.ts';
import { diffUser, diffUserRemoval, mysqlUser, signInStatement, userStatements } from './user.ts';

const apply = { purpose: 'apply' as const };
const drift = { purpose: 'drift' as const };
const down = { kind: 'databases' as const, message: 'MariaDB cannot be reached', gone: false };

test('quotes names and string literals', () => {
  expect(identifier('a`; --\\')).toBe('`a``; --\\`');
  expect(literal(`it's \\`)).toBe(`'it''s \\\\'`);
});

test('reads rows as JSON, and only the hashes of native passwords', () => {
  const { users, databases, grants } = parseRows([
    `["user", "'a'@'b'", {"plugin": "mysql_native_password", "authentication_string": "*A", "account_locked": true}]`,
    `["user", "'c'@'d'", {"plugin": "mysql_native_password", "authentication_string": "*A", "auth_or": []}]`,
    `["user", "'root'@'localhost'", {"plugin": "mysql_native_password", "authentication_string": "*R", "auth_or": [{"plugin": "unix_socket"}, {}]}]`,
    `["database", "x", {"character_set": "utf8mb4", "collation": "utf8mb4_bin"}]`,
    `["grant", {"account": "'a'@'b'", "database": null, "table": null, "privilege": "SELECT", "grantable": "YES"}]`,
  ]);
  expect(users.get("'a'@'b'")).toEqual({ hash: '*A', locked: true, max_user_connections: 0 });
  expect(users.get("'c'@'d'")?.hash).toBeNull();
  expect(users.get("'root'@'localhost'")?.hash).toBe('*R');
  expect(databases.get('x')?.collation).toBe('utf8mb4_bin');
  expect(grants[0]?.grantable).toBe(true);
});

test('reads the password of root@localhost only if the agent can also sign in through the socket', () => {
  const hashOf = (priv: Record<string, unknown>) =>
    parseRows([JSON.stringify(['user', "'root'@'localhost'", priv])]).users.get("'root'@'localhost'")?.hash;
  const native = { plugin: 'mysql_native_password', authentication_string: '*R' };
  expect(hashOf({ ...native, auth_or: [{}, { plugin: 'unix_socket' }] })).toBe('*R');
  expect(hashOf({ plugin: 'unix_socket', auth_or: [{}, native] })).toBe('*R');
  expect(hashOf(native)).toBeNull();
  expect(hashOf({ plugin: 'unix_socket' })).toBeNull();
  expect(hashOf({ ...native, auth_or: [{}, { plugin: 'unix_socket' }, { plugin: 'ed25519' }] })).toBeNull();
});

describe('users', () => {
  const user = { hash: nativeHash('now'), locked: false, max_user_connections: 0 };
  const seen = { missing: null, user, statements: null };

  test('hashes a password as the server does', () => {
    // Documented example of PASSWORD() in MariaDB.
    expect(nativeHash('notagoodpwd')).toBe('*3A70EE9FC6594F88CE9E959CD51C5A1C002DC937');
  });

  test('takes the hash of a password in place of the password', () => {
    const hashed = (password_hash: string) => ({ body: { name: 'a', password_hash } });
    expect(diffUser(hashed(nativeHash('now').toLowerCase()), seen, apply).action).toBe('none');
    expect(diffUser(hashed(nativeHash('other')), seen, apply).changes).toEqual([
      { field: 'password', from: null, to: null },
    ]);
    expect(diffUser(hashed(nativeHash('now')), { ...seen, user: null }, apply).action).toBe('create');
  });

  test('creates and changes a user with statements', () => {
    expect(userStatements("'a'@'%'", null, { hash: '*X', locked: true })).toEqual([
      "CREATE USER 'a'@'%' IDENTIFIED BY PASSWORD '*X' ACCOUNT LOCK",
    ]);
    expect(userStatements("'a'@'%'", user, { hash: user.hash, locked: false, max_user_connections: 2 })).toEqual([
      "ALTER USER 'a'@'%' WITH MAX_USER_CONNECTIONS 2",
    ]);
  });

  test('keeps the socket of root@localhost, and refuses changes that lock out the agent', () => {
    expect(userStatements("'root'@'localhost'", user, { hash: '*X' })).toEqual([
      "ALTER USER 'root'@'localhost' IDENTIFIED VIA unix_socket OR mysql_native_password USING '*X'",
    ]);
    expect(() => diffUser({ body: { name: 'root', password: 'x' } }, { ...seen, user: null }, apply)).toThrow(
      'would lock out the agent',
    );
    const checked = (body: object) => () => mysqlUser.check({ body: { name: 'root', ...body } } as never);
    expect(checked({ password: 'x' })).not.toThrow();
    for (const body of [
      { ensure: 'absent' },
      { locked: true },
      { locked: true, host: 'LOCALHOST' },
      { max_user_connections: 1 },
    ])
      expect(checked(body)).toThrow('only the password');
  });

  test('restores authentication methods other than passwords', () => {
    const socket = "CREATE USER `a`@`%` IDENTIFIED VIA unix_socket OR ed25519 USING 'x' ACCOUNT LOCK";
    const before = { was: 'user' as const, touched: { hash: null }, statements: [socket], dropped: false };
    const other = { ...user, hash: null };
    const actionFor = (statement: string) =>
      diffUserRemoval(before, { ...seen, user: other, statements: [statement] }).action;
    expect(actionFor(socket.replace(' ACCOUNT LOCK', ''))).toBe('none');
    expect(actionFor('CREATE USER `a`@`%` IDENTIFIED VIA unix_socket')).toBe('remove');
    expect(diffUserRemoval(before, seen).action).toBe('remove');
  });

  test('restores a user without a password', () => {
    expect(signInStatement('CREATE USER `it``s`@`%` WITH MAX_USER_CONNECTIONS 2 ACCOUNT LOCK')).toBe(
      "ALTER USER `it``s`@`%` IDENTIFIED VIA mysql_native_password USING '' WITH MAX_USER_CONNECTIONS 2 ACCOUNT LOCK",
    );
    expect(signInStatement('CREATE USER `a`@`%` IDENTIFIED VIA unix_socket')).toBe(
      'ALTER USER `a`@`%` IDENTIFIED VIA unix_socket',
    );
  });

  test('warns before root@localhost loses the socket', () => {
    const messageFor = (creation: string) =>
      diffUserRemoval({ was: 'user', touched: { hash: '' }, statements: [creation], dropped: false }, seen).message;
    expect(messageFor('CREATE USER `root`@`localhost`')).toContain('no unix_socket');
    expect(messageFor('CREATE USER `root`@`localhost` IDENTIFIED VIA unix_socket')).not.toContain('no unix_socket');
    expect(messageFor('CREATE USER `a`@`localhost`')).not.toContain('no unix_socket');
  });

  test('reports a password without its value, and creates no user without a password', () => {
    expect(diffUser({ body: { name: 'a', password: 'now' } }, seen, apply).action).toBe('none');
    expect(diffUser({ body: { name: 'a', password: 'x' } }, seen, apply).changes).toEqual([
      { field: 'password', from: null, to: null },
    ]);
    expect(() => diffUser({ body: { name: 'a' } }, { ...seen, user: null }, apply)).toThrow('without `password`');
  });

  test('restores a dropped user with the statements that the server returned', () => {
    const before = { was: 'user' as const, touched: {}, statements: ['CREATE USER a', 'GRANT b'], dropped: true };
    expect(diffUserRemoval(before, { ...seen, user: null }).action).toBe('remove');
    expect(diffUserRemoval(before, { ...seen, statements: ['CREATE USER a'] }).action).toBe('remove');
    expect(diffUserRemoval(before, { ...seen, statements: before.statements }).action).toBe('none');
    expect(() => diffUserRemoval(before, { missing: down, user: null, statements: null })).toThrow('cannot be reached');
  });
});

describe('databases', () => {
  const database = { character_set: 'utf8mb4', collation: 'utf8mb4_bin' };
  const seen = { missing: null, database };

  test('creates and changes a database with statements that quote names', () => {
    expect(databaseStatement('a`', null, { collation: 'c' })).toBe('CREATE DATABASE `a``` COLLATE `c`');
    expect(databaseStatement('a', database, { character_set: 'latin1' })).toBe(
      'ALTER DATABASE `a` CHARACTER SET `latin1`',
    );
  });

  test('drops a database only with `force`, for `ensure: absent` and for a removal', () => {
    const absent = { name: 'x', ensure: 'absent' as const };
    expect(() => diffDatabase({ body: absent }, seen, apply)).toThrow('the database x is not dropped');
    expect(diffDatabase({ body: absent }, seen, drift).action).toBe('remove');
    expect(diffDatabase({ body: { ...absent, force: true } }, seen, apply).action).toBe('remove');
    expect(() => diffDatabaseRemoval({ name: 'x' }, { was: 'absent' }, seen)).toThrow('the database x is not dropped');
    expect(diffDatabaseRemoval({ name: 'x', force: true }, { was: 'absent' }, seen).action).toBe('remove');
  });
});

describe('grants', () => {
  const place = { user: 'u', database: 'shop_1' };

  test('grants and revokes with statements that escape wildcards in names', () => {
    const from = { names: ['DROP', 'SELECT'], grantable: true };
    expect(grantStatements(place, from, { names: ['INSERT', 'SELECT'], grantable: false })).toEqual([
      "GRANT INSERT ON `shop\\_1`.* TO 'u'@'localhost'",
      "REVOKE DROP, GRANT OPTION ON `shop\\_1`.* FROM 'u'@'localhost'",
    ]);
    expect(grantStatements({ ...place, table: 't_' }, from, from)).toEqual([]);
    const nothing = { names: [], grantable: false };
    expect(grantStatements({ ...place, database: '*' }, nothing, { names: ['FILE'], grantable: true })).toEqual([
      "GRANT FILE ON *.* TO 'u'@'localhost' WITH GRANT OPTION",
    ]);
    expect(grantStatements({ ...place, table: 't_' }, nothing, { names: ['DROP'], grantable: false })).toEqual([
      "GRANT DROP ON `shop_1`.`t_` TO 'u'@'localhost'",
    ]);
  });

  test('reports undeclared privileges as a difference, and restores the previous privileges', () => {
    const body = { user: 'u', database: 'd', privileges: ['SELECT'] };
    const seen = { missing: null, has: { names: ['DROP', 'SELECT'], grantable: false } };
    expect(diffGrant({ body }, seen, apply).changes).toEqual([
      { field: 'privileges', from: 'DROP,SELECT', to: 'SELECT' },
    ]);
    expect(diffGrantRemoval({ names: ['DROP'], grantable: false }, seen).action).toBe('remove');
    expect(diffGrantRemoval(seen.has, seen).action).toBe('none');
  });
});
