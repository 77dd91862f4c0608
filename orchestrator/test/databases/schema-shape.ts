import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';
import { defineQuery } from '../../src/store/query.ts';

/** The parts of a schema that releases rely on, as reported by the database. */
export interface SchemaShape {
  /** By `table.column`. */
  readonly columns: ReadonlyMap<string, ColumnShape>;
  /** Unique indices and constraints, by name, with the table of each. */
  readonly rules: ReadonlyMap<string, string>;
}

export interface ColumnShape {
  readonly type: string;
  readonly nullable: boolean;
  readonly hasDefault: boolean;
}

interface ColumnRow {
  readonly name: string;
  readonly type: string;
  readonly nullable: number;
  readonly has_default: number;
}

const columnsOf = {
  postgres: sql<ColumnRow>`select table_name || '.' || column_name as name, data_type as type,
      case when is_nullable = 'YES' then 1 else 0 end as nullable,
      case when column_default is null then 0 else 1 end as has_default
    from information_schema.columns where table_schema = 'public'`,
  sqlite: sql<ColumnRow>`select m.name || '.' || c.name as name, c.type as type,
      case when c."notnull" = 0 and c.pk = 0 then 1 else 0 end as nullable,
      case when c.dflt_value is null then 0 else 1 end as has_default
    from sqlite_master m join pragma_table_xinfo(m.name) c where m.type = 'table'`,
};

const rulesOf = {
  postgres: sql<{ name: string; relation: string }>`
    select i.relname as name, t.relname as relation from pg_index x
      join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
      join pg_namespace n on n.oid = t.relnamespace
      where x.indisunique and n.nspname = 'public'
    union select c.conname as name, t.relname as relation from pg_constraint c join pg_class t on t.oid = c.conrelid
      join pg_namespace n on n.oid = t.relnamespace where c.contype in ('c', 'f', 'x') and n.nspname = 'public'`,
  sqlite: sql<{ name: string; relation: string }>`select i.name as name, m.name as relation
    from sqlite_master m join pragma_index_list(m.name) i where m.type = 'table' and i."unique" = 1`,
};

/** Reads the shape of a database's schema. */
export async function shapeOf(db: Database): Promise<SchemaShape> {
  const columns = await db.all(
    defineQuery('test/columns', () => columnsOf[db.kind]),
    {},
  );
  const rules = await db.all(
    defineQuery('test/rules', () => rulesOf[db.kind]),
    {},
  );
  return {
    columns: new Map(
      columns.map(({ name, type, nullable, has_default }) => [
        name,
        { type, nullable: Number(nullable) === 1, hasDefault: Number(has_default) === 1 },
      ]),
    ),
    rules: new Map(rules.map(({ name, relation }) => [name, relation])),
  };
}

const tableOf = (column: string): string => column.slice(0, column.indexOf('.'));

/**
 * Returns the differences that break a release that uses the schema `before` if the database has the schema `after`;
 * empty if the schema only expands. Does not detect changes to rows.
 */
export function breaksOf(before: SchemaShape, after: SchemaShape): string[] {
  const breaks: string[] = [];
  const tables = new Set(Array.from(before.columns.keys(), tableOf));
  for (const [name, old] of before.columns) {
    const now = after.columns.get(name);
    if (now === undefined) breaks.push(`${name} is dropped or renamed`);
    else if (now.type !== old.type) breaks.push(`${name} changes its type from ${old.type} to ${now.type}`);
    else if (now.nullable !== old.nullable)
      breaks.push(`${name} ${now.nullable ? 'may become null' : 'no longer accepts null'}`);
    else if (old.hasDefault && !now.hasDefault) breaks.push(`${name} loses its default`);
  }
  for (const [name, { nullable, hasDefault }] of after.columns)
    if (!before.columns.has(name) && tables.has(tableOf(name)) && !nullable && !hasDefault)
      breaks.push(`${name} is required, but earlier releases do not set it`);
  for (const [name, table] of after.rules)
    if (!before.rules.has(name) && tables.has(table)) breaks.push(`${name} restricts ${table}`);
  return breaks;
}
