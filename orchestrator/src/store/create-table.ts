import type { CreateTableBuilder, RawBuilder } from 'kysely';
import type { MigrationBuild } from './migrations/migration.ts';

/**
 * `text`, `bytes`, or `integer` (64 bits), with the suffix `?` if null is allowed; `counter` is an auto-incrementing
 * key.
 */
type ColumnKind = 'text' | 'text?' | 'integer' | 'integer?' | 'bytes' | 'counter';

/** A table definition, with column types that both databases support. */
export interface TableShape {
  columns: Record<string, ColumnKind>;
  primaryKey?: readonly string[];
  unique?: readonly string[];
  /** The parent table, if any. Deleting a parent row deletes its child rows. */
  childOf?: { column: string; table: string };
}

export function createTable({ db, dialect }: MigrationBuild, name: string, shape: TableShape) {
  const { columns } = dialect;
  let table: CreateTableBuilder<string, string> = db.schema.createTable(name);
  for (const [column, kind] of Object.entries(shape.columns)) {
    const type: RawBuilder<unknown> =
      kind === 'counter' || kind === 'bytes' ? columns[kind] : kind.startsWith('text') ? columns.text : columns.integer;
    table = table.addColumn(column, type, (definition) =>
      kind === 'counter' || kind.endsWith('?') ? definition : definition.notNull(),
    );
  }
  if (shape.primaryKey) table = table.addPrimaryKeyConstraint(`${name}_key`, [...shape.primaryKey]);
  for (const column of shape.unique ?? []) table = table.addUniqueConstraint(`${name}_${column}_unique`, [column]);
  if (shape.childOf) {
    const { column, table: parent } = shape.childOf;
    table = table.addForeignKeyConstraint(`${name}_parent`, [column], parent, [column], (key) =>
      key.onDelete('cascade'),
    );
  }
  return table.modifyEnd(columns.tableEnd);
}

export function createIndex({ db }: MigrationBuild, name: string, table: string, columns: readonly string[]) {
  return db.schema
    .createIndex(name)
    .on(table)
    .columns([...columns]);
}
