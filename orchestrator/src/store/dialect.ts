import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  type SqlBool,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely';
import { inlineConstants } from './inline-constants.ts';
import { ListPlaceholder, Placeholder } from './params.ts';
import type { Schema } from './schema.ts';

/**
 * All differences between SQLite and PostgreSQL. Constructs that both share (`on conflict`, `excluded`, `returning`,
 * CTEs, window functions, booleans as 1 and 0, JSON as text) are written with kysely directly.
 */

export type DatabaseKind = 'sqlite' | 'postgres';

/** Column types in queries. `integer` has 64 bits. */
export type ValueType = 'text' | 'integer';
type TypeOf<T extends ValueType> = T extends 'integer' ? number : string;

export interface Dialect {
  readonly kind: DatabaseKind;

  /** `column in (…)` with a list parameter of any length. An empty list matches no rows. */
  isIn(column: string, list: readonly string[] | readonly number[], type?: ValueType): RawBuilder<SqlBool>;

  /** `column not in (…)`. An empty list matches every row whose column is not null. */
  isNotIn(column: string, list: readonly string[] | readonly number[], type?: ValueType): RawBuilder<SqlBool>;

  /** Text at a top-level key of a JSON object in a column; null if the key is missing. */
  jsonField(column: string, key: string): RawBuilder<string | null>;

  /** Reports whether a JSON array of strings in a column contains the value. */
  jsonArrayHas(column: string, value: string): RawBuilder<SqlBool>;

  /** Reports whether a JSON object in a column has the top-level key. */
  jsonObjectHas(column: string, key: string): RawBuilder<SqlBool>;

  /** Number of items in the array at a top-level key of a JSON object in a column; null if the key is missing. */
  jsonLength(column: string, key: string): RawBuilder<number | null>;

  /**
   * Converts a parameter created by `jsonRows` to a table, so that one statement can insert many rows:
   * `insertInto(t).columns([…]).expression(db.selectFrom(d.rowsOf(p.rows, {key: 'text'}).as('r')).selectAll())`. SQLite
   * requires a `where` between a select and `on conflict`, such as `.where(sql.lit(true))`.
   */
  rowsOf<C extends Record<string, ValueType>>(rows: string, columns: C): RawBuilder<{ [K in keyof C]: TypeOf<C[K]> }>;

  /** Aggregates two text columns into the text of one JSON object, sorted by key; `{}` if there are no rows. */
  objectOf(key: string, value: string): RawBuilder<string>;

  /** Reports whether the column contains the text, ignoring the case of ASCII letters. */
  containsText(column: string, text: string): RawBuilder<SqlBool>;

  /** The larger of two numbers or strings; null if either is null. PostgreSQL's own `greatest` ignores nulls. */
  greatest<T extends number | string>(left: RawBuilder<T>, right: RawBuilder<T>): RawBuilder<T>;

  /**
   * Casts a value whose type the database cannot infer, such as a value in a select list or next to another parameter.
   */
  typed<T extends ValueType>(value: TypeOf<T> | null, type: T): RawBuilder<TypeOf<T>>;

  /**
   * PostgreSQL: the ID of the open transaction, which is larger than the IDs of all transactions that had already begun
   * to write.
   */
  readonly transactionId: RawBuilder<number>;

  /** PostgreSQL: the ID of the oldest transaction that may still be open. */
  readonly oldestOpenTransaction: RawBuilder<number>;

  /** The server's current time in Unix milliseconds, even within a transaction. */
  readonly serverTime: RawBuilder<number>;

  /** Column types for migrations. Both databases compare text by code point, so that pages have the same order. */
  readonly columns: {
    readonly text: RawBuilder<unknown>;
    readonly integer: RawBuilder<unknown>;
    readonly bytes: RawBuilder<unknown>;
    /** The complete definition of an auto-incrementing primary key that never reuses a number. */
    readonly counter: RawBuilder<unknown>;
    /** The last clause of a `create table` statement. */
    readonly tableEnd: RawBuilder<unknown>;
  };
}

export interface Buildable<O> {
  compile(provider: Kysely<Schema>): CompiledQuery<O>;
}

function asList(list: readonly string[] | readonly number[], type: ValueType): ListPlaceholder {
  const given: unknown = list;
  if (!(given instanceof Placeholder)) throw new TypeError('A list in a query must be a parameter, not a value');
  return new ListPlaceholder(given.param, type);
}

const sqlite: Dialect = {
  kind: 'sqlite',
  isIn: (column, list, type = 'text') =>
    sql`${sql.ref(column)} in (select value from json_each(${asList(list, type)}))`,
  isNotIn: (column, list, type = 'text') =>
    sql`${sql.ref(column)} not in (select value from json_each(${asList(list, type)}))`,
  // Does not use `->>`, which interprets some keys as paths or numbers. The inner select separates the columns of
  // `json_each` (`key`, `value`, `type`, …) from the columns of the table.
  jsonField: (column, key) =>
    sql`(select field.value from (select ${sql.ref(column)} as document) as given, json_each(given.document) as field
      where field.key = ${key} limit 1)`,
  jsonArrayHas: (column, value) =>
    sql`exists (select 1 from (select ${sql.ref(column)} as document) as given, json_each(given.document) as item
      where item.value = ${value})`,
  jsonObjectHas: (column, key) =>
    sql`exists (select 1 from (select ${sql.ref(column)} as document) as given, json_each(given.document) as field
      where field.key = ${key})`,
  jsonLength: (column, key) => sql`json_array_length(${sql.ref(column)}, ${sql.lit(`$.${key}`)})`,
  // Converts each row to an object, because `json_each` returns JSON text, which every `json_extract` would parse
  // again.
  rowsOf: (rows, columns) =>
    sql`(select ${sql.join(
      Object.keys(columns).map((name) => sql`json_extract(value, ${sql.lit(`$.${name}`)}) as ${sql.ref(name)}`),
    )} from jsonb_each(${rows}) order by key)`,
  objectOf: (key, value) => sql`json_group_object(${sql.ref(key)}, ${sql.ref(value)} order by ${sql.ref(key)})`,
  containsText: (column, text) => sql`instr(lower(${sql.ref(column)}), lower(${text})) > 0`,
  greatest: (left, right) => sql`max(${left}, ${right})`,
  typed: (value, type) => sql`cast(${value} as ${sql.raw(type)})`,
  // A single process writes to an SQLite file, so that nothing reads the IDs.
  transactionId: sql`0`,
  oldestOpenTransaction: sql`0`,
  serverTime: sql`cast(unixepoch('subsec') * 1000 as integer)`,
  columns: {
    text: sql`text`,
    integer: sql`integer`,
    bytes: sql`blob`,
    counter: sql`integer primary key autoincrement`,
    tableEnd: sql`strict`,
  },
};

const postgresTypes: Record<ValueType, string> = { text: 'text', integer: 'bigint' };

const postgres: Dialect = {
  kind: 'postgres',
  isIn: (column, list, type = 'text') =>
    sql`${sql.ref(column)} = any(${asList(list, type)}::${sql.raw(postgresTypes[type])}[])`,
  isNotIn: (column, list, type = 'text') =>
    sql`${sql.ref(column)} <> all(${asList(list, type)}::${sql.raw(postgresTypes[type])}[])`,
  jsonField: (column, key) => sql`(${sql.ref(column)}::json ->> ${key}::text)`,
  jsonArrayHas: (column, value) =>
    sql`exists (select 1 from json_array_elements_text(${sql.ref(column)}::json) as item(element)
      where item.element = ${value}::text)`,
  jsonObjectHas: (column, key) =>
    sql`exists (select 1 from json_object_keys(${sql.ref(column)}::json) as field(name)
      where field.name = ${key}::text)`,
  jsonLength: (column, key) => sql`json_array_length(${sql.ref(column)}::json -> ${sql.lit(key)})::bigint`,
  rowsOf: (rows, columns) =>
    sql`(select * from json_to_recordset(${rows}::json) as record(${sql.join(
      Object.entries(columns).map(([name, type]) => sql`${sql.ref(name)} ${sql.raw(postgresTypes[type])}`),
    )}))`,
  objectOf: (key, value) =>
    sql`coalesce(json_object_agg(${sql.ref(key)}, ${sql.ref(value)} order by ${sql.ref(key)}), '{}')::text`,
  // Under the C collation, lower() changes ASCII letters only, as in SQLite.
  containsText: (column, text) =>
    sql`position(lower(${text}::text collate "C") in lower(${sql.ref(column)} collate "C")) > 0`,
  greatest: (left, right) =>
    sql`case when ${left} is null or ${right} is null then null else greatest(${left}, ${right}) end`,
  typed: (value, type) => sql`cast(${value} as ${sql.raw(postgresTypes[type])})`,
  transactionId: sql`pg_current_xact_id()::text::bigint`,
  oldestOpenTransaction: sql`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
  serverTime: sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`,
  columns: {
    text: sql`text collate "C"`,
    integer: sql`bigint`,
    bytes: sql`bytea`,
    counter: sql`bigint generated by default as identity primary key`,
    tableEnd: sql``,
  },
};

/**
 * Writes parameters as `+?`, which has the same value as `?`. SQLite reads the values of bare parameters while
 * planning, and then replans some statements on each execution, which often costs several times as much as the
 * execution itself.
 */
class StablePlansCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }
}

export const dialects: Readonly<Record<DatabaseKind, Dialect>> = { sqlite, postgres };

/** Query builders without a connection. They compile queries but cannot run them. */
export const builders: Readonly<Record<DatabaseKind, Kysely<Schema>>> = {
  sqlite: new Kysely<Schema>({
    plugins: [inlineConstants],
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createQueryCompiler: () => new StablePlansCompiler(),
      createIntrospector: (db) => new SqliteIntrospector(db),
    },
  }),
  postgres: new Kysely<Schema>({
    plugins: [inlineConstants],
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
  }),
};
