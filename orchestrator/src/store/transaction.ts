import type { ErrorCode } from '@muster/protocol';
import type { AnyQuery, Query } from './query.ts';

/**
 * The effect that a statement must have for its transaction to commit. `changed`: insert, update, or delete at least
 * one row. `row`: return at least one row. `no_row`: return no rows.
 */
export type Expectation = 'changed' | 'row' | 'no_row';

/** A query with its values and an optional precondition. Creating a statement does not run it. */
export interface Statement<Row = unknown> {
  readonly query: AnyQuery<Row>;
  readonly params: object;
  readonly expect?: Expectation;
  readonly else?: ErrorCode;
  readonly detail?: string;
}

/**
 * A transaction: statements that run in order. If a statement fails or its precondition does not hold, the whole
 * transaction is rolled back. Transactions are serializable, so a check and the writes that depend on it belong in the
 * same transaction.
 */
export interface Unit {
  /** Name of the transaction in logs and errors: `noun/verb`. */
  readonly name: string;
  readonly statements: readonly Statement[];
  /**
   * Whether an agent caused the transaction. Such transactions are limited in size, individually and in total, so that
   * operators can always write.
   */
  readonly ofAgent?: boolean;
  /**
   * Key of a row that many transactions change at the same time. On PostgreSQL, all but one of them would fail and be
   * retried, so each process runs its transactions with the same key one after the other.
   */
  readonly turn?: string | undefined;
}

/** A precondition, and the error with which the transaction fails if the precondition does not hold. */
export interface Precondition {
  readonly expect: Expectation;
  readonly else: ErrorCode;
  /** Message for operators. The default is the title of the error. */
  readonly detail?: string;
}

/** Creates a statement for a transaction from a query and its values. */
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

  /** Returns the result of one statement, with its row type. */
  of<Row>(of: Statement<Row>): StatementResult<Row> {
    const result = this.results[this.#statements.indexOf(of)];
    if (!result) throw new TypeError('The statement is not part of this transaction');
    return result as StatementResult<Row>;
  }
}
