import type { Database, Statement } from 'better-sqlite3';
import { sqliteFailure } from './sqlite-failure.ts';
import type { Answer, WireResult, WireUnit } from './sqlite-message.ts';

/** A sync failed. It is unknown which part of the commit is on the disk, so the process must exit. */
export class LostSync extends Error {}

/** The answers to a group of writes, and the number of committed transactions. */
export interface GroupOutcome {
  readonly answers: Answer[];
  readonly commits: number;
}

interface Prepared {
  readonly statement: Statement<unknown[]>;
  readonly writes: boolean;
}

/** A failure of the whole transaction rather than of a single write. */
class GroupFailure extends Error {
  readonly failure: unknown;
  constructor(failure: unknown) {
    super('The transaction failed');
    this.failure = failure;
  }
}

/**
 * Runs writes on one connection. Many writes share a transaction, but each is atomic.
 *
 * Even refusals are answered after the commit, because the write that caused a refusal may be in the same group, and
 * its commit may fail. If the transaction fails, each write is retried in a separate transaction, so that on a full
 * disk one large write does not fail the others.
 */
export class UnitGroups {
  readonly #db: Database;
  readonly #beforeCommit: () => void;
  readonly #sql = new Map<number, string>();
  readonly #prepared = new Map<number, Prepared>();
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #savepoint: Statement;
  readonly #release: Statement;
  readonly #undo: Statement;

  /** @param beforeCommit runs before each commit; tests and benchmarks use it for delays */
  constructor(db: Database, beforeCommit: () => void = () => {}) {
    this.#db = db;
    this.#beforeCommit = beforeCommit;
    this.#begin = db.prepare('begin immediate');
    this.#commit = db.prepare('commit');
    this.#rollback = db.prepare('rollback');
    this.#savepoint = db.prepare('savepoint unit');
    this.#release = db.prepare('release unit');
    this.#undo = db.prepare('rollback to unit');
  }

  define(id: number, sql: string): void {
    this.#sql.set(id, sql);
  }

  /**
   * Commits a group.
   * @param next returns the next write, or undefined to close the group
   * @throws LostSync
   */
  run(next: () => WireUnit | undefined): GroupOutcome {
    const units: WireUnit[] = [];
    try {
      const answers = this.#transaction(() => {
        const done: Answer[] = [];
        for (let unit = next(); unit !== undefined; unit = next()) {
          units.push(unit);
          done.push(this.#unit(unit));
        }
        return done;
      });
      return { answers, commits: 1 };
    } catch (error) {
      if (error instanceof LostSync) throw error;
      // If the transaction could not begin, no write has been taken from the caller yet.
      if (units.length === 0) for (let unit = next(); unit !== undefined; unit = next()) units.push(unit);
      return this.#oneByOne(units, error);
    }
  }

  #oneByOne(units: readonly WireUnit[], groupError: unknown): GroupOutcome {
    const answers: Answer[] = [];
    let commits = 0;
    // If another process holds the lock, each write would wait just as long without success.
    const hopeless = units.length === 1 || (groupError as { code?: unknown }).code === 'SQLITE_BUSY';
    for (const unit of units) {
      if (hopeless) {
        answers.push(failed(unit.id, groupError));
        continue;
      }
      try {
        answers.push(this.#transaction(() => this.#unit(unit)));
        commits++;
      } catch (error) {
        if (error instanceof LostSync) throw error;
        answers.push(failed(unit.id, error));
      }
    }
    return { answers, commits };
  }

  /** Commits the work, or rolls it back and throws the cause. */
  #transaction<T>(work: () => T): T {
    try {
      this.#begin.run();
      const result = work();
      this.#beforeCommit();
      this.#commit.run();
      return result;
    } catch (error) {
      const cause = error instanceof GroupFailure ? error.failure : error;
      // After some errors, SQLite rolls back automatically.
      if (this.#db.inTransaction) this.#rollback.run();
      if (sqliteFailure(cause).kind === 'lost_sync')
        throw new LostSync(`failed to sync a commit to the disk: ${messageOf(cause)}`);
      throw cause;
    }
  }

  #unit(unit: WireUnit): Answer {
    const results: WireResult[] = [];
    const { statements } = unit;
    const last = statements.length - 1;
    // A savepoint is needed only before a statement whose changes a later failure may have to undo.
    let open = false;
    try {
      for (let index = 0; index <= last; index++) {
        const [query, values, expect] = statements[index]!;
        const { statement, writes } = this.#prepare(query);
        if (writes && !open && (index < last || expect > 1)) {
          this.#savepoint.run();
          open = true;
        }
        let rows = 0;
        let changes = 0;
        if (statement.reader) {
          const found = statement.all(...values);
          rows = found.length;
          if (writes) changes = rows;
          results.push({ rows: found, changes });
        } else {
          changes = statement.run(...values).changes;
          results.push(changes);
        }
        if ((expect === 1 && changes === 0) || (expect === 2 && rows === 0) || (expect === 3 && rows > 0)) {
          if (open) this.#takeBack();
          return { id: unit.id, outcome: 'refused', index };
        }
      }
      if (open) this.#release.run();
      return { id: unit.id, outcome: 'committed', results };
    } catch (error) {
      const { kind } = sqliteFailure(error);
      // Other errors, and errors that ended the transaction, fail the whole group.
      if ((kind !== 'constraint' && kind !== 'bug') || !this.#db.inTransaction) throw new GroupFailure(error);
      if (open) this.#takeBack();
      return failed(unit.id, error);
    }
  }

  #takeBack(): void {
    this.#undo.run();
    this.#release.run();
  }

  #prepare(id: number): Prepared {
    const known = this.#prepared.get(id);
    if (known) return known;
    const sql = this.#sql.get(id);
    if (sql === undefined) throw new Error(`Query ${id} was not defined`);
    const statement = this.#db.prepare<unknown[]>(sql);
    const prepared = { statement, writes: !statement.readonly };
    this.#prepared.set(id, prepared);
    return prepared;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function failed(id: number, error: unknown): Answer {
  const failure = sqliteFailure(error);
  const message = messageOf(error);
  if (failure.kind === 'constraint') return { id, outcome: 'constraint', constraint: failure.constraint, message };
  // `lost_sync` is never answered, because it was thrown as LostSync before.
  return { id, outcome: failure.kind === 'lost_sync' ? 'unavailable' : failure.kind, message };
}
