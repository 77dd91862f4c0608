import { MusterError } from '@muster/protocol';
import type { DatabaseKind } from './dialect.ts';
import type { Query } from './query.ts';
import type { Unit, UnitResult } from './transaction.ts';

/** Counters since the database was opened, for metrics. */
export interface DatabaseStats {
  /** Number of writes that were submitted and are not answered yet. */
  readonly queued: number;
  /** Approximate bytes of the queued writes. */
  readonly queuedBytes: number;
  readonly unitsCommitted: number;
  /** Number of writes that were refused or failed. They changed nothing. */
  readonly unitsFailed: number;
  /** Number of transactions. On SQLite, many writes share one transaction. */
  readonly commits: number;
  /** Number of retries after a serialization conflict (PostgreSQL only). */
  readonly retries: number;
}

/**
 * Queries and transactions on either database. Reads see committed data, and every write of this process whose promise
 * has resolved.
 */
export interface Database {
  readonly kind: DatabaseKind;

  /** The first row, or undefined. Rejects with `storage_unavailable` when the database cannot be read. */
  get<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row | undefined>;

  /** All rows. Rejects as `get` does. The caller limits the number of rows. */
  all<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row[]>;

  /**
   * Runs the statements in one transaction and resolves when it is durable. Concurrent writes may commit in either
   * order: await the first if the second depends on it.
   *
   * Rejects without any change with
   * - the `else` error of the precondition that failed,
   * - `ConstraintViolation` when a key or constraint is violated that no precondition guards (a bug: 500),
   * - `storage_full` and `storage_unavailable` as the disk or the server reports them, and `storage_unavailable` at
   *   once when too many writes are queued.
   *
   * After `OutcomeUnknown` it is not known whether the transaction was committed.
   */
  write(unit: Unit): Promise<UnitResult>;

  stats(): DatabaseStats;

  /** Refuses further work, completes queued writes, and closes files and connections. */
  close(): Promise<void>;
}

/** A key or constraint was violated that no precondition of the transaction guards. */
export class ConstraintViolation extends Error {
  readonly constraint: 'unique' | 'foreign_key' | 'not_null' | 'check' | 'other';

  constructor(constraint: ConstraintViolation['constraint'], unit: string, detail: string) {
    super(`Unit ${unit} breaks a constraint: ${detail}`);
    this.name = 'ConstraintViolation';
    this.constraint = constraint;
  }
}

/** The connection or the writer was lost during a commit. It is unknown whether the transaction was committed. */
export class OutcomeUnknown extends MusterError {
  constructor(unit: string, detail: string) {
    super('outcome_unknown', `Whether ${unit} was committed is not known: ${detail}`);
    this.name = 'OutcomeUnknown';
  }
}
