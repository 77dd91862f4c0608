import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { describeDatabases } from '../../test/databases/databases.ts';
import { breaksOf, type SchemaShape, shapeOf } from '../../test/databases/schema-shape.ts';
import { createIndex } from './create-table.ts';
import { refuseBesideOlder, SchemaRefused } from './migrate.ts';
import { migrations } from './migrations/index.ts';
import type { Migration } from './migrations/migration.ts';

/**
 * Replicas of the previous release use the database while the first replica of this release migrates it. A migration
 * that breaks them must not claim to be compatible with their schema version. Without this claim, the newer replica
 * refuses to start while they run.
 */

describeDatabases('migrations that claim to be compatible with earlier releases', (fixture) => {
  /** Returns the shape of a new database with the first `count` migrations and the migrations in `more`. */
  async function shapeAfter(count: number, ...more: Migration[]): Promise<SchemaShape> {
    const db = await fixture.open({
      at: await fixture.newAddress(),
      migrations: [...migrations.slice(0, count), ...more],
    });
    const shape = await shapeOf(db);
    await db.close();
    return shape;
  }

  test('drops, renames, and restricts nothing that the compatible releases use', async () => {
    const shapes = new Map<number, SchemaShape>();
    const at = async (version: number) => {
      const shape = shapes.get(version) ?? (await shapeAfter(version));
      shapes.set(version, shape);
      return shape;
    };
    for (const { version, name, compatibleFrom } of migrations) {
      if (compatibleFrom === undefined) continue;
      expect(compatibleFrom, name).toBeLessThan(version);
      const breaks = breaksOf(await at(compatibleFrom), await at(version));
      expect(breaks, `migration ${version} (${name}): remove or raise its compatibleFrom of ${compatibleFrom}`).toEqual(
        [],
      );
    }
    expect((await at(migrations.length)).columns.size).toBeGreaterThan(200);
  });

  test.each<[string, Migration['statements'], string]>([
    [
      'drops a column',
      ({ db }) => [db.schema.alterTable('replicas').dropColumn('draining')],
      'replicas.draining is dropped or renamed',
    ],
    [
      'renames a column',
      ({ db }) => [db.schema.alterTable('agents').renameColumn('link_probe', 'probe')],
      'agents.link_probe is dropped or renamed',
    ],
    ['drops a table', ({ db }) => [db.schema.dropTable('replica_keys')], 'replica_keys.kind is dropped or renamed'],
    [
      'renames a table',
      ({ db }) => [db.schema.alterTable('replica_keys').renameTo('keys')],
      'replica_keys.kind is dropped or renamed',
    ],
    [
      'adds a unique index',
      () => [sql`create unique index replicas_name on replicas (name)`],
      'replicas_name restricts replicas',
    ],
  ])('detects a migration that %s', async (_, statements, expected) => {
    const migration = { version: migrations.length + 1, name: 'breaks', compatibleFrom: migrations.length, statements };
    const breaks = breaksOf(await shapeAfter(migrations.length), await shapeAfter(migrations.length, migration));
    expect(breaks).toContain(expected);
  });

  test('allows new tables, new indices, and new columns that are nullable or have a default', async () => {
    const migration: Migration = {
      version: migrations.length + 1,
      name: 'expands',
      statements: (build) => [
        build.db.schema
          .createTable('extra')
          .addColumn('id', build.dialect.columns.text, (column) => column.notNull().primaryKey())
          .modifyEnd(build.dialect.columns.tableEnd),
        build.db.schema.alterTable('replicas').addColumn('note', build.dialect.columns.text),
        build.db.schema
          .alterTable('replicas')
          .addColumn('count', build.dialect.columns.integer, (column) => column.notNull().defaultTo(0)),
        createIndex(build, 'replicas_note', 'replicas', ['note']),
      ],
    };
    expect(breaksOf(await shapeAfter(migrations.length), await shapeAfter(migrations.length, migration))).toEqual([]);
  });
});

describe('breaks of a schema', () => {
  const shape = (columns: Record<string, [type: string, nullable: boolean, hasDefault: boolean]>): SchemaShape => ({
    columns: new Map(
      Object.entries(columns).map(([name, [type, nullable, hasDefault]]) => [name, { type, nullable, hasDefault }]),
    ),
    rules: new Map(),
  });
  const before = shape({ 't.a': ['text', true, false], 't.b': ['text', false, true] });

  test.each([
    [{ 't.a': ['bigint', true, false] }, 't.a changes its type from text to bigint'],
    [{ 't.a': ['text', false, false] }, 't.a no longer accepts null'],
    [{ 't.b': ['text', true, true] }, 't.b may become null'],
    [{ 't.b': ['text', false, false] }, 't.b loses its default'],
    [{ 't.c': ['text', false, false] }, 't.c is required, but earlier releases do not set it'],
  ] as const)('reports %j as incompatible with earlier releases', (changed, expected) => {
    const after = { columns: new Map([...before.columns, ...shape(changed as never).columns]), rules: new Map() };
    expect(breaksOf(before, after)).toEqual([expected]);
  });
});

describe('a replica beside others', () => {
  const due = (version: number, compatibleFrom?: number): Migration => ({
    version,
    name: 'due',
    ...(compatibleFrom === undefined ? {} : { compatibleFrom }),
    statements: () => [],
  });
  const others = [
    { name: 'c', schema: 40 },
    { name: 'b', schema: 40 },
    { name: 'new', schema: 42 },
  ];

  test('migrates only if all other replicas can use the database afterward', () => {
    refuseBesideOlder([], others);
    refuseBesideOlder([due(41, 40), due(42, 29)], others);
    refuseBesideOlder([due(42)], [{ name: 'new', schema: 42 }]);
    const refused = () => refuseBesideOlder([due(41, 40), due(42, 41)], others);
    expect(refused).toThrow(SchemaRefused);
    expect(refused).toThrow('after which the replicas b, c could not use it; nothing was changed: stop them first');
    expect(() => refuseBesideOlder([due(41)], others.slice(1))).toThrow('the replica b could not use it');
  });
});
