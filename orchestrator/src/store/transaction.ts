import type { ErrorCode } from '@muster/protocol';
import type { AnyQuery, Query } from './query.ts';

/**
 * Effect that a statement must have for its transaction to commit: `changed` at least one row inserted, updated or deleted;
 * `row` at least one row returned; `no_row` no row returned.
 */
export type Expectation = 'changed' | 'row' | 'no_row';

/** A query with its values and an optional precondition. Plain data: building it runs nothing. */
export interface Statement<Row = unknown> {
  readonly query: AnyQuery<Row>;
  readonly params: object;
  readonly expect?: Expectation;
  readonly else?: ErrorCode;
  readonly detail?: string;
}

/**
 * A transaction: statements in order. The first that fails, or whose precondition does not hold, undoes those before
 * it. Transactions are serializable, so put a check and the writes that depend on it in one.
 */
export interface Unit {
  /** For logs and errors, `noun/verb`. */
  readonly name: string;
  readonly statements: readonly Statement[];
  /**
   * Caused by an agent: refused if it is too large, and limited in total so that there is room for writes of operators.
   */
  readonly ofAgent?: boolean;
}

/** A precondition, and the error that the caller gets when it does not hold. */
export interface Precondition {
  readonly expect: Expectation;
  readonly else: ErrorCode;
  /** Shown to people; the title of the error if absent. */
  readonly detail?: string;
}

/** A query with its values, for a transaction. */
export function statement<P, Row>(
  query: Query<P, Row>,
  params: NoInfer<P> & object,
  precondition?: Precondition,
): Statement<Row> {
  return { query: query as unknown as AnyQuery<Row>, params, ...precondition };
}

/** The result of one statement. `changes` is 0 for a select. */
export interface StatementResult<Row = unknown> {
  readonly rows: readonly Row[];
  readonly changes: number;
}

/** The results of a committed transaction, by statement. */
export class UnitResult {
  readonly results: readonly StatementResult[];
  readonly #statements: readonly Statement[];

  constructor(unit: Unit, results: readonly StatementResult[]) {
    this.#statements = unit.statements;
    this.results = results;
  }

  /** The result of one statement, with its row type. */
  of<Row>(of: Statement<Row>): StatementResult<Row> {
    const result = this.results[this.#statements.indexOf(of)];
    if (!result) throw new TypeError('The statement is not part of this unit');
    return result as StatementResult<Row>;
  }
}
