import type { ErrorCode } from '@muster/protocol';
import type { AnyQuery, Query } from './query.ts';

/**
 * What a statement must do for its unit to stand: `changed` at least one row inserted, updated or deleted; `row` at
 * least one row returned; `no_row` none returned.
 */
export type Expectation = 'changed' | 'row' | 'no_row';

/** A query with its values and, if wanted, a precondition. Plain data: building it touches nothing. */
export interface Statement<Row = unknown> {
  readonly query: AnyQuery<Row>;
  readonly params: object;
  readonly expect?: Expectation;
  readonly else?: ErrorCode;
  readonly detail?: string;
}

/**
 * All or nothing: statements in order. The first that fails, or whose precondition does not hold, undoes those before
 * it. Units behave as if they ran one after the other, so a check and what depends on it belong in one unit.
 */
export interface Unit {
  /** For logs and errors, `noun/verb`. */
  readonly name: string;
  readonly statements: readonly Statement[];
  /**
   * A unit that an agent causes. It is refused alone when it is too large, and all units of agents together leave room
   * for those of others.
   */
  readonly ofAgent?: boolean;
}

/** A precondition, and the error that the writer gets when it does not hold. */
export interface Precondition {
  readonly expect: Expectation;
  readonly else: ErrorCode;
  /** For a person; the title of the error when absent. */
  readonly detail?: string;
}

/** Puts a query and its values together, for a unit. */
export function statement<P, Row>(
  query: Query<P, Row>,
  params: NoInfer<P> & object,
  precondition?: Precondition,
): Statement<Row> {
  return { query: query as unknown as AnyQuery<Row>, params, ...precondition };
}

/** What one statement did. `changes` is 0 for a select. */
export interface StatementResult<Row = unknown> {
  readonly rows: readonly Row[];
  readonly changes: number;
}

/** What a committed unit did, statement by statement. */
export class UnitResult {
  readonly results: readonly StatementResult[];
  readonly #statements: readonly Statement[];

  constructor(unit: Unit, results: readonly StatementResult[]) {
    this.#statements = unit.statements;
    this.results = results;
  }

  /** The result of one statement of the unit, with its row type. */
  of<Row>(of: Statement<Row>): StatementResult<Row> {
    const result = this.results[this.#statements.indexOf(of)];
    if (!result) throw new TypeError('The statement is not part of this unit');
    return result as StatementResult<Row>;
  }
}
