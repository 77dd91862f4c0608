import type { CompiledQuery, DeleteResult, InsertResult, Kysely, Simplify, UpdateResult } from 'kysely';
import { type Buildable, builders, type DatabaseKind, type Dialect, dialects } from './dialect.ts';
import {
  type BoundValue,
  ListPlaceholder,
  type ParamValue,
  Placeholder,
  placeholders,
  plainValue,
  type Slot,
} from './params.ts';
import type { Schema } from './schema.ts';

/** A compiled query: the SQL text and the source of each value. */
export interface CompiledStatement {
  readonly sql: string;
  readonly slots: readonly Slot[];
}

/**
 * A statement with named parameters, compiled once for each kind of database. Can be a module-level constant, because
 * it contains neither values nor a connection.
 */
export interface Query<P, Row> {
  /** Unique in this process. Serves as the cache key for prepared statements. */
  readonly id: number;
  readonly name: string;
  /** Compiles the query on first use. Throws if the builder is invalid. */
  compiled(kind: DatabaseKind): CompiledStatement;
  /** Never set; exists only to carry the types. */
  readonly types?: { readonly params: (params: P) => void; readonly row: Row };
}

export type AnyQuery<Row = unknown> = Query<never, Row>;

export type ParamsOf<P> = { readonly [K in keyof P]: ParamValue };

type NoRows = InsertResult | UpdateResult | DeleteResult;
/** Row type of a statement. Statements without `returning` return no rows. */
export type RowOf<O> = [O] extends [NoRows] ? never : Simplify<O>;

let lastId = 0;

class BuiltQuery<P, Row> implements Query<P, Row> {
  readonly id = ++lastId;
  readonly name: string;
  readonly #build: (db: Kysely<Schema>, dialect: Dialect) => CompiledQuery;
  readonly #compiled: { [K in DatabaseKind]?: CompiledStatement } = {};

  constructor(name: string, build: (db: Kysely<Schema>, dialect: Dialect) => CompiledQuery) {
    this.name = name;
    this.#build = build;
  }

  compiled(kind: DatabaseKind): CompiledStatement {
    const known = this.#compiled[kind];
    if (known) return known;
    const { sql, parameters } = this.#build(builders[kind], dialects[kind]);
    const compiled = { sql, slots: parameters.map((parameter) => slotOf(this.name, parameter)) };
    this.#compiled[kind] = compiled;
    return compiled;
  }
}

function slotOf(query: string, parameter: unknown): Slot {
  if (parameter instanceof Placeholder) return { param: parameter.param, list: parameter instanceof ListPlaceholder };
  if (Array.isArray(parameter))
    throw new TypeError(`Query ${query}: a list must be a parameter that is used with isIn`);
  return { value: plainValue(parameter as Exclude<ParamValue, readonly unknown[]>) };
}

/**
 * Defines a query. Annotate `p` with the parameters; the row type follows from what the builder selects or returns:
 *
 *     const agentById = defineQuery('agents/by id', (db, p: { node_id: string }) =>
 *       db.selectFrom('agents').selectAll().where('node_id', '=', p.node_id));
 *
 * `p.x` is a placeholder without a value: pass it on, do not inspect it. Queries that depend on a value belong in
 * `defineVariants`.
 * @param name for logs and errors, in the form `noun/effect`
 * @param build called once per kind of database, when the query first runs
 */
export function defineQuery<O, P extends ParamsOf<P> = Record<never, never>>(
  name: string,
  build: (db: Kysely<Schema>, p: P, dialect: Dialect) => Buildable<O>,
): Query<P, RowOf<O>> {
  return new BuiltQuery(name, (db, dialect) => build(db, placeholders<P>(), dialect).compile(db));
}

/** Maximum number of variants per definition. A higher number indicates that a caller passes a value as a variant. */
const maxVariants = 512;

/** Parameters of a variant. Parameters that the variant does not use are optional. */
export type VariantParams<P> = { readonly [K in keyof P]?: P[K] | undefined };

/**
 * Defines a family of queries for lists whose filters and order vary. A variant states which filters apply; their
 * values remain parameters:
 *
 *     const listAgents = defineVariants('agents/list',
 *       (db, p: { status: string; limit: number }, d, v: { status: boolean }) => {
 *         let query = db.selectFrom('agents').selectAll().orderBy('name').limit(p.limit);
 *         if (v.status) query = query.where('status', '=', p.status);
 *         return query;
 *       });
 *     await database.all(listAgents({ status: true }), { status: 'approved', limit: 50 });
 * @returns a function that maps a variant to its query, which is built once
 */
export function defineVariants<
  O,
  P extends ParamsOf<P>,
  V extends { readonly [K in keyof V]: boolean | string | number | undefined },
>(
  name: string,
  build: (db: Kysely<Schema>, p: P, dialect: Dialect, variant: V) => Buildable<O>,
): (variant: V) => Query<VariantParams<P>, RowOf<O>> {
  const known = new Map<string, Query<VariantParams<P>, RowOf<O>>>();
  return (variant) => {
    const parts = Object.entries(variant as Record<string, unknown>).filter(([, value]) => value !== undefined);
    const key = JSON.stringify(parts.sort(([a], [b]) => (a < b ? -1 : 1)));
    let query = known.get(key);
    if (!query) {
      if (known.size >= maxVariants) throw new Error(`Query ${name} has more than ${maxVariants} variants: ${key}`);
      query = new BuiltQuery(`${name} ${key}`, (db, dialect) =>
        build(db, placeholders<P>(), dialect, variant).compile(db),
      );
      known.set(key, query);
    }
    return query;
  };
}

/**
 * Fills the slots of a statement, in order.
 * @param asList converts a list to the form that the database accepts
 * @throws TypeError if a parameter is missing, or if only one of value and parameter is a list; both are bugs
 */
export function bind(
  query: AnyQuery,
  kind: DatabaseKind,
  params: object,
  asList: (list: readonly string[] | readonly number[]) => BoundValue,
): BoundValue[] {
  const { slots } = query.compiled(kind);
  const values = new Array<BoundValue>(slots.length);
  for (let index = 0; index < slots.length; index++) {
    const slot = slots[index]!;
    if ('value' in slot) {
      values[index] = slot.value;
      continue;
    }
    const value = (params as Record<string, ParamValue | undefined>)[slot.param];
    if (value === undefined) throw new TypeError(`Query ${query.name}: parameter ${slot.param} is missing`);
    if (isList(value) !== slot.list)
      throw new TypeError(`Query ${query.name}: parameter ${slot.param} ${slot.list ? 'must' : 'must not'} be a list`);
    values[index] = isList(value) ? asList(value) : plainValue(value);
  }
  return values;
}

function isList(value: ParamValue): value is readonly string[] | readonly number[] {
  return Array.isArray(value);
}
