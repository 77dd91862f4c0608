import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { identifier, literal, serverMessage, serverOf } from '../../host/databases/postgresql.ts';
import { scramVerifier } from '../../host/databases/scram.ts';
import type { DatabaseRecord, RoleRecord } from './cluster.ts';
import { alterStatements, createStatement, diffDatabase, diffDatabaseRemoval } from './database.ts';
import { diffExtension, diffExtensionRemoval, extensionStatements } from './extension.ts';
import { diffGrant, diffGrantRemoval, grantStatements, objectKey } from './grant.ts';
import { diffRole, diffRoleRemoval, rememberRole, roleStatements } from './role.ts';

const apply = { purpose: 'apply' as const };
const drift = { purpose: 'drift' as const };
const down = { kind: 'databases' as const, message: 'PostgreSQL cannot be reached', gone: false };
const uninstalled = { kind: 'programs' as const, message: 'psql is not installed', gone: true };

test('quotes names and string literals, and includes no statement in errors', () => {
  expect(identifier(`a"; DROP--\\`)).toBe(`"a""; DROP--\\"`);
  expect(literal(`it's \\! :x`)).toBe(`'it''s \\! :x'`);
  const stderr =
    'psql:<stdin>:3: ERROR:  role "a" cannot be dropped\nDETAIL:  owner of table b\nLINE 1: ALTER ROLE a PASSWORD \'SCRAM\'\n        ^\n';
  expect(serverMessage(stderr)).toBe('ERROR:  role "a" cannot be dropped DETAIL:  owner of table b');
});

test('lets psql locate a server that does not listen on a socket, or for which no matching psql is installed', () => {
  expect(serverOf('/var/run/postgresql 5432 :VERSION_NUM')).toBeNull();
  expect(serverOf('localhost 5432 150016')).toBeNull();
  expect(serverOf('/var/run/postgresql 5432 990001')).toBeNull();
  const [version] = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  if (version !== undefined)
    expect(serverOf(`/tmp 5433 ${version}0016`)).toEqual({
      program: `/usr/lib/postgresql/${version}/bin/psql`,
      host: '/tmp',
      port: '5433',
    });
});

describe('roles', () => {
  const salt = Buffer.alloc(16, 1);
  const role: RoleRecord = {
    ...{ login: true, superuser: false, createdb: false, createrole: false, inherit: true, replication: false },
    ...{ bypassrls: false, connection_limit: -1, verifier: scramVerifier('now', salt), valid_until: null },
    ...{ member_of: ['a', 'b'], members: [], extra: false },
  };
  const seen = { missing: null, role, unknown: [] };

  test('creates and changes a role with statements that quote names', () => {
    expect(roleStatements('x"y', null, { login: true, createdb: false, member_of: ['g'], verifier: "S'" })).toEqual([
      `CREATE ROLE "x""y" LOGIN NOCREATEDB PASSWORD 'S'''`,
      'GRANT "g" TO "x""y"',
    ]);
    expect(roleStatements('x', role, { login: false, member_of: ['b', 'c'], verifier: null })).toEqual([
      'ALTER ROLE "x" NOLOGIN PASSWORD NULL',
      'GRANT "c" TO "x"',
      'REVOKE "a" FROM "x"',
    ]);
    expect(roleStatements('x', role, { login: true, member_of: ['b', 'a', 'a'] })).toEqual([]);
  });

  test('compares only declared attributes, and reports a changed password without its value', () => {
    expect(diffRole({ body: { name: 'x', password: 'now', login: true } }, seen, apply).action).toBe('none');
    const body = { name: 'x', password: 'other', createdb: true, member_of: ['b'] };
    expect(diffRole({ body }, seen, apply).changes).toEqual([
      { field: 'createdb', from: 'false', to: 'true' },
      { field: 'member_of', from: 'a,b', to: 'b' },
      { field: 'password', from: null, to: null },
    ]);
  });

  test('drops a role that has settings only with `force`', () => {
    const extra = { ...seen, role: { ...role, extra: true } };
    const absent = { name: 'x', ensure: 'absent' as const };
    expect(() => diffRole({ body: absent }, extra, apply)).toThrow('declare `force: true`');
    expect(diffRole({ body: absent }, extra, drift).action).toBe('remove');
    expect(diffRole({ body: { ...absent, force: true } }, extra, apply).action).toBe('remove');
  });

  test('restores each attribute that it changed, or the whole role if it dropped it', () => {
    const first = rememberRole(role, [{ field: 'createdb' }], null);
    const second = rememberRole({ ...role, createdb: true }, [{ field: 'createdb' }, { field: 'password' }], first);
    expect(second).toEqual({ was: 'role', touched: { createdb: false, verifier: role.verifier }, whole: null });
    expect(diffRoleRemoval(second, { ...seen, role: { ...role, createdb: true, verifier: null } })).toMatchObject({
      action: 'remove',
      changes: [
        { field: 'createdb', from: 'true', to: 'false' },
        { field: 'password', from: null, to: null },
      ],
    });
    const dropped = rememberRole(role, [{ field: 'ensure' }], null);
    expect(diffRoleRemoval(dropped, { ...seen, role: null })).toMatchObject({ action: 'remove' });
    expect(diffRoleRemoval(second, { ...seen, role: null }).action).toBe('none');
    const other = { ...role, login: false, member_of: [] };
    expect(diffRoleRemoval(dropped, { ...seen, role: other }).changes.map(({ field }) => field)).toEqual([
      'login',
      'member_of',
    ]);
  });

  test('plans a role while the server is unreachable, but refuses to check or remove it', () => {
    const unseen = { missing: down, role: null, unknown: [] };
    expect(diffRole({ body: { name: 'x' } }, unseen, apply)).toMatchObject({ action: 'create', awaits: [down] });
    expect(() => diffRole({ body: { name: 'x' } }, unseen, drift)).toThrow('cannot be reached');
    expect(() => diffRole({ body: { name: 'x', ensure: 'absent' } }, unseen, apply)).toThrow('cannot be reached');
    expect(() => diffRoleRemoval({ was: 'absent' }, unseen)).toThrow('cannot be reached');
    expect(diffRoleRemoval({ was: 'absent' }, { ...unseen, missing: uninstalled }).action).toBe('none');
  });
});

describe('databases', () => {
  const database: DatabaseRecord = {
    ...{ owner: 'a', encoding: 'UTF8', collate: 'en_US.utf8', ctype: 'en_US.utf8', connection_limit: -1 },
  };
  const seen = { missing: null, database, hasOwner: true };

  test('creates and changes a database with statements that quote names', () => {
    expect(
      createStatement({
        name: 'x"',
        owner: 'o',
        encoding: 'UTF8',
        locale: 'C',
        template_database: 't',
        connection_limit: 3,
      }),
    ).toBe(`CREATE DATABASE "x""" OWNER "o" ENCODING 'UTF8' LOCALE 'C' TEMPLATE "t" CONNECTION LIMIT 3`);
    expect(alterStatements('x', database, { owner: 'b', connection_limit: -1 })).toEqual([
      'ALTER DATABASE "x" OWNER TO "b"',
    ]);
  });

  test('drops a database only with `force`, for `ensure: absent` and for a removal', () => {
    const absent = { name: 'x', ensure: 'absent' as const };
    expect(() => diffDatabase({ body: absent }, seen, apply)).toThrow('the database x is not dropped');
    expect(diffDatabase({ body: { ...absent, force: true } }, seen, apply).action).toBe('remove');
    expect(() => diffDatabaseRemoval({ name: 'x' }, { was: 'absent' }, seen)).toThrow('the database x is not dropped');
    expect(diffDatabaseRemoval({ name: 'x', force: true }, { was: 'absent' }, seen).action).toBe('remove');
    expect(diffDatabaseRemoval({ name: 'x' }, { was: 'absent' }, { ...seen, database: null }).action).toBe('none');
    expect(
      diffDatabaseRemoval({ name: 'x' }, { was: 'database', dropped: true }, { ...seen, database: null }).message,
    ).toBe('it was dropped with its data, which cannot be restored');
  });

  test('reports a different encoding or locale as drift, and refuses to change it', () => {
    const body = { name: 'x', encoding: 'LATIN1', locale: 'C' };
    expect(() => diffDatabase({ body }, seen, apply)).toThrow('copy the data into a new database');
    expect(diffDatabase({ body }, seen, drift).changes.map(({ field }) => field)).toEqual(['encoding', 'locale']);
    expect(diffDatabase({ body: { name: 'x', locale: 'en_US.UTF-8' } }, seen, apply).action).toBe('none');
  });
});

describe('grants', () => {
  const key = objectKey({ type: 'table', schema: 's"', name: 't' }, 'd');

  test('grants and revokes with statements that quote names', () => {
    expect(key).toBe('TABLE "s"""."t"');
    expect(objectKey({ type: 'database', schema: null, name: null }, 'd"')).toBe('DATABASE "d"""');
    expect(grantStatements(key, 'r', { SELECT: false, INSERT: true }, { UPDATE: false, INSERT: false })).toEqual([
      `REVOKE SELECT ON ${key} FROM "r"`,
      `REVOKE GRANT OPTION FOR INSERT ON ${key} FROM "r"`,
      `GRANT UPDATE ON ${key} TO "r"`,
    ]);
    expect(grantStatements(key, 'public', {}, { SELECT: false })).toEqual([`GRANT SELECT ON ${key} TO PUBLIC`]);
    expect(grantStatements(key, 'r', { SELECT: false }, { SELECT: true })).toEqual([
      `GRANT SELECT ON ${key} TO "r" WITH GRANT OPTION`,
    ]);
  });

  test('compares all privileges on an object, and counts the objects that change', () => {
    const body = { database: 'd', role: 'r', schema: 's', table: '*', privileges: ['SELECT'] };
    const objects = [
      { key: 'a', has: { SELECT: true } },
      { key: 'b', has: { SELECT: false, INSERT: false } },
    ];
    expect(diffGrant({ body }, { missing: [], objects }, apply).changes).toEqual([
      { field: 'privileges', from: 'INSERT,SELECT on 1 of 2 objects', to: 'SELECT on 1 of 2 objects' },
    ]);
    expect(diffGrant({ body }, { missing: [], objects: objects.slice(0, 1) }, apply).action).toBe('none');
    const gone = { ...down, gone: true };
    const absent = { database: 'd', role: 'public', ensure: 'absent' as const };
    expect(diffGrant({ body: absent }, { missing: [gone], objects: [] }, apply)).toMatchObject({ awaits: [gone] });
    expect(diffGrant({ body: { ...absent, role: 'r' } }, { missing: [gone], objects: [] }, apply).action).toBe('none');
    const before = { objects: { b: { INSERT: false } } };
    expect(diffGrantRemoval(body, before, { missing: [], objects })).toMatchObject({ action: 'remove' });
    expect(diffGrantRemoval(body, before, { missing: [], objects: [] }).action).toBe('none');
    expect(() => diffGrantRemoval(body, before, { missing: [down], objects: [] })).toThrow('cannot be reached');
  });
});

describe('extensions', () => {
  const extension = { version: '1.5', schema: 'public', has_tables: false, targets: ['1.6'] };

  test('creates, updates, and moves an extension, but only to a version that PostgreSQL can update to', () => {
    expect(extensionStatements('x"', null, { schema: 's', version: '1' })).toEqual([
      'CREATE EXTENSION "x""" SCHEMA "s" VERSION "1"',
    ]);
    expect(extensionStatements('x', extension, { schema: 's', version: '1.6' })).toEqual([
      'ALTER EXTENSION "x" UPDATE TO "1.6"',
      'ALTER EXTENSION "x" SET SCHEMA "s"',
    ]);
    const body = { name: 'x', database: 'd', version: '2' };
    expect(() => diffExtension({ body }, { missing: null, extension }, apply)).toThrow('cannot be updated');
  });

  test('requires `force` to drop an extension that has tables, and keeps a version that it cannot downgrade', () => {
    const body = { name: 'x', database: 'd' };
    const full = { missing: null, extension: { ...extension, has_tables: true } };
    expect(() => diffExtensionRemoval(body, { was: 'absent' }, full)).toThrow('declare `force: true`');
    expect(diffExtensionRemoval({ ...body, force: true }, { was: 'absent' }, full).action).toBe('remove');
    const before = { was: 'extension' as const, version: '1.4', schema: 'public' };
    expect(diffExtensionRemoval(body, before, { missing: null, extension }).message).toContain(
      'cannot go back to the version 1.4',
    );
  });
});
