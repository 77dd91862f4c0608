import { MusterError } from '@muster/protocol';
import type { DatabaseKind } from './dialect.ts';
import type { Query } from './query.ts';
import type { Unit, UnitResult } from './transaction.ts';

/** What a database has done since it was opened, for metrics. */
export interface DatabaseStats {
  /** Units handed in and not answered yet. */
  readonly queued: number;
  /** Roughly how many bytes those hold. */
  readonly queuedBytes: number;
  readonly unitsCommitted: number;
  /** Units that were refused or failed; none of them changed anything. */
  readonly unitsFailed: number;
  /** Transactions; on SQLite many units share one. */
  readonly commits: number;
  /** Transactions that were run again because they met another (PostgreSQL only). */
  readonly retries: number;
}

/**
 * The store's ground: queries and units, on either database. Reads see what is committed, and everything that this
 * process wrote once its `write` has resolved.
 */
export interface Database {
  readonly kind: DatabaseKind;

  /** The first row, or undefined. Rejects with `storage_unavailable` when the database cannot be read. */
  get<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row | undefined>;

  /** Every row. Rejects as `get` does. The caller bounds the size: a list has a limit. */
  all<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row[]>;

  /**
   * Runs a unit and resolves when it is durable. Units in flight at the same time may commit in either order: who needs
   * one after the other awaits the first.
   *
   * Rejects, nothing having been changed, with
   * - the `else` error of the precondition that did not hold,
   * - `ConstraintViolation` when a key or constraint is broken that no precondition guarded (a bug: 500),
   * - `storage_full` and `storage_unavailable` as the disk or the server says, and `storage_unavailable` at once when too
   *   many units wait already,
   * - `OutcomeUnknown` alone leaves open whether the unit was committed.
   */
  write(unit: Unit): Promise<UnitResult>;

  stats(): DatabaseStats;

  /** Refuses further work, finishes what was handed in, and lets go of files and connections. */
  close(): Promise<void>;
}

/** A key or constraint was broken that no precondition of the unit guarded. */
export class ConstraintViolation extends Error {
  readonly constraint: 'unique' | 'foreign_key' | 'not_null' | 'check' | 'other';

  constructor(constraint: ConstraintViolation['constraint'], unit: string, detail: string) {
    super(`Unit ${unit} breaks a constraint: ${detail}`);
    this.name = 'ConstraintViolation';
    this.constraint = constraint;
  }
}

/** The connection or the writer was lost during a commit: the unit may be there or not, whole in either case. */
export class OutcomeUnknown extends MusterError {
  constructor(unit: string, detail: string) {
    super('outcome_unknown', `Whether ${unit} was committed is not known: ${detail}`);
    this.name = 'OutcomeUnknown';
  }
}
