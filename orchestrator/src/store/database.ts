import { MusterError } from '@muster/protocol';
import type { DatabaseKind } from './dialect.ts';
import type { Query } from './query.ts';
import type { StatementResult, Unit, UnitResult } from './transaction.ts';

/** Counters since the database was opened, for metrics. */
export interface DatabaseStats {
  /** Number of submitted writes that have not completed. */
  readonly queued: number;
  /** Approximate size of the queued writes in bytes. */
  readonly queuedBytes: number;
  readonly unitsCommitted: number;
  /** Number of writes that were refused or failed. These writes changed nothing. */
  readonly unitsFailed: number;
  /** Number of transactions. On SQLite, many writes share one transaction. */
  readonly commits: number;
  /** Number of retries after a serialization conflict or because of a locked row (PostgreSQL only). */
  readonly retries: number;
}

/** An SQLite or PostgreSQL database. A read sees every write by this process whose promise has resolved. */
export interface Database {
  readonly kind: DatabaseKind;

  /** Returns the first row, or undefined. Rejects with `storage_unavailable` if the database cannot be read. */
  get<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row | undefined>;

  /** Returns all rows, and rejects as `get` does. The query must limit the number of rows. */
  all<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row[]>;

  /**
   * Runs the statements in one transaction and resolves when it is durable. Concurrent writes may commit in any order,
   * so await a write before submitting a write that depends on it.
   *
   * Rejects without any change with
   * - the `else` error of the precondition that does not hold,
   * - `ConstraintViolation` if a key or constraint is violated that no precondition guards, which is a bug,
   * - `storage_full` or `storage_unavailable` if the disk or the server fails, and `storage_unavailable` if too many
   *   writes are queued.
   *
   * Rejects with `OutcomeUnknown` if it is unknown whether the transaction was committed.
   */
  write(unit: Unit): Promise<UnitResult>;

  /**
   * Runs one statement that commits by itself. On PostgreSQL, it has its own connection and is not serializable, so
   * neither waiting writes nor conflicts with transactions delay it. Rejects as `write` does.
   */
  alone<P, Row>(query: Query<P, Row>, params: NoInfer<P> & object): Promise<StatementResult<Row>>;

  /**
   * Returns a number that increases when another process may have written to the database. A cached row is valid as
   * long as the number stays the same and this process does not change the row.
   */
  outsideChanges(): number;

  stats(): DatabaseStats;

  /** Refuses further work, completes queued writes, and closes files and connections. */
  close(): Promise<void>;
}

/** Returns a database that forwards all calls to `db`, except for the given methods. */
export const withOverrides = (db: Database, overrides: Partial<Database>): Database => ({
  kind: db.kind,
  get: (query, params) => db.get(query, params),
  all: (query, params) => db.all(query, params),
  write: (unit) => db.write(unit),
  alone: (query, params) => db.alone(query, params),
  outsideChanges: () => db.outsideChanges(),
  stats: () => db.stats(),
  close: () => db.close(),
  ...overrides,
});

/** A key or constraint was violated, and no precondition in the transaction guards it. */
export class ConstraintViolation extends Error {
  readonly constraint: 'unique' | 'foreign_key' | 'not_null' | 'check' | 'other';

  constructor(constraint: ConstraintViolation['constraint'], unit: string, detail: string) {
    super(`Transaction ${unit} violates a constraint: ${detail}`);
    this.name = 'ConstraintViolation';
    this.constraint = constraint;
  }
}

/** The connection or the writer was lost during a commit, so it is unknown whether the transaction was committed. */
export class OutcomeUnknown extends MusterError {
  constructor(unit: string, detail: string) {
    super('outcome_unknown', `It is unknown whether ${unit} was committed: ${detail}`);
    this.name = 'OutcomeUnknown';
  }
}
