import type { Database, Statement } from 'better-sqlite3';
import { sqliteFailure } from './sqlite-failure.ts';
import type { Answer, WireResult, WireUnit } from './sqlite-message.ts';

/** Thrown when a sync failed: what of the commit is on disk is unknown, so the process has to start anew. */
export class LostSync extends Error {}

/** What a group of units did, and in how many transactions. */
export interface GroupOutcome {
  readonly answers: Answer[];
  readonly commits: number;
}

interface Prepared {
  readonly statement: Statement<unknown[]>;
  readonly writes: boolean;
}

/** A failure that concerns the whole transaction, not the one unit that met it. */
class GroupFailure extends Error {
  readonly failure: unknown;
  constructor(failure: unknown) {
    super('The transaction failed');
    this.failure = failure;
  }
}

/**
 * Runs units on one connection, many to a transaction, each of them all or nothing on its own.
 *
 * Nothing is answered before the commit, refusals included: what a unit was refused for may be the work of another in
 * the same group, which the commit may yet lose. When the transaction as a whole fails, each unit gets one of its own,
 * so that a single large one does not take the others with it on a full disk.
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

  /** @param beforeCommit runs before every commit; tests and benches make it slow */
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

  /** Makes a query known by its number. */
  define(id: number, sql: string): void {
    this.#sql.set(id, sql);
  }

  /**
   * Commits a group.
   * @param next gives the next unit, or undefined when the group is to be closed
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
      // When not even the transaction could be begun, the units of this group are still with the caller.
      if (units.length === 0) for (let unit = next(); unit !== undefined; unit = next()) units.push(unit);
      return this.#oneByOne(units, error);
    }
  }

  #oneByOne(units: readonly WireUnit[], groupError: unknown): GroupOutcome {
    const answers: Answer[] = [];
    let commits = 0;
    // Held by another process, or gone: each unit would only wait in vain for as long again.
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

  /** Commits what `work` did, or undoes it and throws the cause. */
  #transaction<T>(work: () => T): T {
    try {
      this.#begin.run();
      const result = work();
      this.#beforeCommit();
      this.#commit.run();
      return result;
    } catch (error) {
      const cause = error instanceof GroupFailure ? error.failure : error;
      // SQLite may have rolled back by itself.
      if (this.#db.inTransaction) this.#rollback.run();
      if (sqliteFailure(cause).kind === 'lost_sync')
        throw new LostSync(`A commit could not be made durable: ${messageOf(cause)}`);
      throw cause;
    }
  }

  #unit(unit: WireUnit): Answer {
    const results: WireResult[] = [];
    const { statements } = unit;
    const last = statements.length - 1;
    // A savepoint is needed only once something was written that a later failure would have to undo.
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
      // Only a constraint or a bug concerns this unit alone, and only while the transaction is still there.
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
  // A lost sync never gets here: it is thrown as LostSync.
  return { id, outcome: failure.kind === 'lost_sync' ? 'unavailable' : failure.kind, message };
}
