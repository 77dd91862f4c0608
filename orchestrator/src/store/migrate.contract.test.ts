import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { describeDatabases, testTime } from '../../test/databases/databases.ts';
import { fillFirstRelease, firstRelease } from '../../test/databases/first-release.ts';
import { nextMigrations, oneMore } from '../../test/databases/migrations.ts';
import { inThisDatabase } from '../../test/databases/this-database.ts';
import { type MigrationReport, pendingMigrations, SchemaRefused } from './migrate.ts';
import { migrations } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';
import { lockKey } from './postgres/migrate-postgres.ts';
import { agentKey, insertAgentKey } from './queries/agents/agent-keys.ts';
import { defineQuery } from './query.ts';
import { statement } from './transaction.ts';

const put = defineQuery('settings/put', (db, p: { key: string }) =>
  db.insertInto('settings').values({ key: p.key, value: 'old' }),
);
const all = defineQuery('settings/all', (db) => db.selectFrom('settings').selectAll());
const versions = defineQuery('versions', (db) => db.selectFrom('schema_version').selectAll().orderBy('version'));
const extra = defineQuery('extra', () => sql<{ id: string }>`select id from extra`);
const migrator = fileURLToPath(new URL('../../test/databases/migrate-until-killed.ts', import.meta.url));

describe('pendingMigrations', () => {
  test('returns the migrations that are due, and refuses a newer database', () => {
    expect(pendingMigrations([], nextMigrations, 'x')).toEqual(nextMigrations);
    expect(pendingMigrations(migrations, nextMigrations, 'x')).toEqual([oneMore]);
    expect(pendingMigrations(nextMigrations, nextMigrations, 'x')).toEqual([]);
    expect(() => pendingMigrations([...migrations, { version: 97 }], migrations, 'm.db')).toThrow(
      /^m.db has schema version 97, but this release of Muster supports versions up to/,
    );
    expect(() => pendingMigrations([], [oneMore, oneMore], 'x')).toThrow('has version');
  });

  test('accepts a newer database only if every newer migration is compatible with this release', () => {
    const newest = migrations.length;
    const pending = (...from: (number | null)[]) =>
      pendingMigrations(
        [...migrations, ...from.map((compatible_from, index) => ({ version: newest + 1 + index, compatible_from }))],
        migrations,
        'x',
      );
    expect(pending(newest)).toEqual([]);
    expect(pending(newest - 1, newest)).toEqual([]);
    for (const refused of [[null], [newest + 1], [newest, null], [newest + 1, newest], [newest, newest + 1]])
      expect(() => pending(...refused)).toThrow(SchemaRefused);
  });
});

describeDatabases('migrations', (fixture) => {
  /** Creates a database with this release's schema and one row. */
  async function filled(): Promise<string> {
    const at = await fixture.newAddress();
    const database = await fixture.open({ at });
    await database.write({ name: 'settings/put', statements: [statement(put, { key: 'kept' })] });
    await database.close();
    return at;
  }

  test('migrates a database to the next release and keeps all rows', async () => {
    const at = await filled();
    const reports: MigrationReport[] = [];
    const database = await fixture.open({
      at,
      migrations: nextMigrations,
      onMigrated: (report) => reports.push(report),
    });
    expect(reports).toMatchObject([{ from: migrations.length, to: nextMigrations.length }]);
    expect(await database.all(all, {})).toEqual([{ key: 'kept', value: 'old', note: 'migrated' }]);
    expect(await database.all(versions, {})).toEqual(
      nextMigrations.map(({ version, name, compatibleFrom = null }) => ({
        ...{ version, name, applied_at: testTime },
        compatible_from: compatibleFrom,
      })),
    );
    await database.close();
    await fixture.open({ at, migrations: nextMigrations, onMigrated: (report) => reports.push(report) });
    expect(reports[1]).toEqual({ from: nextMigrations.length, to: nextMigrations.length, backup: null });
  });

  test('refuses a database from a newer release and leaves it unchanged', async () => {
    const at = await filled();
    await (await fixture.open({ at, migrations: nextMigrations })).close();
    await expect(fixture.open({ at })).rejects.toThrow(SchemaRefused);
    await expect(fixture.open({ at })).rejects.toThrow(/A newer release wrote it/);
    const database = await fixture.open({ at, migrations: nextMigrations });
    expect(await database.all(all, {})).toHaveLength(1);
  });

  test('uses a database from a newer release that is compatible, and leaves its schema unchanged', async () => {
    const at = await filled();
    const compatible = [...migrations, { ...oneMore, compatibleFrom: migrations.length }];
    await (await fixture.open({ at, migrations: compatible })).close();
    const reports: MigrationReport[] = [];
    const older = await fixture.open({ at, onMigrated: (report) => reports.push(report) });
    const { version } = oneMore;
    expect(reports).toEqual([{ from: version, to: version, backup: null }]);
    await older.write({ name: 'settings/put', statements: [statement(put, { key: 'later' })] });
    expect(await older.all(versions, {})).toHaveLength(version);
    await older.close();
    await expect(fixture.open({ at, migrations: migrations.slice(0, -1) })).rejects.toThrow(SchemaRefused);
    const newer = await fixture.open({ at, migrations: compatible });
    expect(await newer.all(all, {})).toHaveLength(2);
  });

  test('keeps the old schema version when a migration fails', async () => {
    const at = await filled();
    const failing: Migration = {
      ...oneMore,
      statements: (build) => [...oneMore.statements(build), sql`insert into no_such_table values (1)`],
    };
    await expect(fixture.open({ at, migrations: [...migrations, failing] })).rejects.toThrow('no_such_table');
    const database = await fixture.open({ at });
    expect(await database.all(all, {})).toEqual([{ key: 'kept', value: 'old' }]);
    await expect(database.all(extra, {})).rejects.toThrow('extra');
  });

  test.each([1, 2, 3])(
    'keeps the old schema version when the process is killed after statement %i of a migration',
    async (after) => {
      const at = await filled();
      const child = spawn(process.execPath, [migrator, fixture.kind, at, String(after)], { stdio: 'inherit' });
      const [, signal] = await once(child, 'exit');
      expect(signal).toBe('SIGKILL');
      const database = await fixture.open({ at });
      expect(await database.all(versions, {})).toHaveLength(migrations.length);
      expect(await database.all(all, {})).toEqual([{ key: 'kept', value: 'old' }]);
      await database.close();
      const migrated = await fixture.open({ at, migrations: nextMigrations });
      expect(await migrated.all(all, {})).toEqual([{ key: 'kept', value: 'old', note: 'migrated' }]);
    },
  );

  test('records the known key of every agent as its only current key in migration 14', async () => {
    const at = await fixture.newAddress();
    const older = await fixture.open({ at, migrations: migrations.slice(0, 1) });
    await fillFirstRelease(older);
    await older.close();
    const database = await fixture.open({ at });
    const key = { public_key: '12'.repeat(32), node_id: firstRelease.node };
    expect(await database.get(agentKey, key)).toMatchObject({ node_id: firstRelease.node, valid_until: null });
    const second = statement(insertAgentKey, { ...key, public_key: '34'.repeat(32) });
    await expect(database.write({ name: 'second', statements: [second] })).rejects.toThrow(/unique/i);
  });

  test('runs migrations once when several processes start together', async () => {
    const at = await filled();
    const databases = await Promise.all([1, 2, 3].map(() => fixture.open({ at, migrations: nextMigrations })));
    expect(await databases[0]!.all(versions, {})).toHaveLength(nextMigrations.length);
  });

  if (fixture.kind === 'postgres')
    test('waits to migrate while another process migrates the database', async () => {
      const at = await filled();
      const other = new Client({ connectionString: at });
      await other.connect();
      try {
        await other.query('begin');
        await other.query('select pg_advisory_xact_lock($1)', [lockKey]);
        let opened = false;
        const opening = fixture.open({ at, migrations: nextMigrations }).then((database) => {
          opened = true;
          return database;
        });
        const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted and ${inThisDatabase}`;
        while (!opened && (await other.query(waiting)).rowCount === 0);
        expect(opened).toBe(false);
        await other.query('commit');
        expect(await (await opening).all(versions, {})).toHaveLength(nextMigrations.length);
      } finally {
        await other.end();
      }
    });

  if (fixture.kind === 'sqlite')
    test('copies the whole SQLite file before a migration, readable only by its owner', async () => {
      const at = await filled();
      const beside = () => readdirSync(dirname(at)).filter((name) => name.startsWith(`${basename(at)}.`));
      expect(beside()).toEqual([]);
      writeFileSync(`${at}.v1-19700101T000000Z.backup.partial`, 'half');
      const reports: MigrationReport[] = [];
      await fixture.open({ at, migrations: nextMigrations, onMigrated: (report) => reports.push(report) });
      const name = `${basename(at)}.v${migrations.length}-20231114T221320Z.backup`;
      expect(beside()).toEqual([name]);
      const copy = join(dirname(at), name);
      expect(reports[0]?.backup).toBe(copy);
      expect(statSync(copy).mode & 0o777).toBe(0o600);
      expect(statSync(at).mode & 0o777).toBe(0o600);
      // The backup is a database that this release can open.
      const restored = await fixture.open({ at: copy });
      expect(await restored.all(all, {})).toEqual([{ key: 'kept', value: 'old' }]);
    });

  if (fixture.kind === 'sqlite')
    test('leaves an empty file empty when any of its migrations fails', async () => {
      const at = await fixture.newAddress();
      const failing: Migration = { ...oneMore, statements: () => [sql`insert into no_such_table values (1)`] };
      await expect(fixture.open({ at, migrations: [...migrations, failing] })).rejects.toThrow('no_such_table');
      const file = new Sqlite(at, { readonly: true });
      expect(file.prepare('select name from sqlite_schema').all()).toEqual([]);
      file.close();
      const database = await fixture.open({ at });
      expect(await database.all(versions, {})).toHaveLength(migrations.length);
    });

  if (fixture.kind === 'sqlite')
    test('refuses the database file of another program', async () => {
      const at = await fixture.newAddress();
      const other = new Sqlite(at);
      other.exec('create table theirs (x)');
      other.close();
      await expect(fixture.open({ at })).rejects.toThrow(/is not a Muster database/);
    });
});
