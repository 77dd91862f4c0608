import type { Database, Statement } from 'better-sqlite3';
import { errorMessage } from '../../../../lib/src/error-message.ts';
import { sqliteFailure } from './sqlite-failure.ts';
import type { Answer, WireResult, WireUnit } from './sqlite-message.ts';

/** A disk sync failed. It is unknown which part of the commit is on the disk, so the process must exit. */
export class LostSync extends Error {}

export interface GroupOutcome {
  readonly answers: Answer[];
  /** Number of transactions committed. */
  readonly commits: number;
  /** Whether another connection has written since the last group. */
  readonly outside: boolean;
}

interface Prepared {
  readonly statement: Statement<unknown[]>;
  readonly writes: boolean;
}

/** The whole transaction failed, not only one write. */
class GroupFailure extends Error {
  readonly failure: unknown;
  constructor(failure: unknown) {
    super('the transaction failed');
    this.failure = failure;
  }
}

/** A write must be undone, but the transaction has no savepoint before it. */
class MissingSavepoint extends Error {}

/**
 * Runs writes on one connection. Many writes share a transaction, but each is atomic. A group first runs without
 * savepoints, because writes rarely have to be undone, and a savepoint for each write would copy every page that the
 * write changes. If a write has to be undone, the whole transaction is rolled back, and the group runs again with a
 * savepoint before each write.
 *
 * Even refusals are returned only after the commit, because the write that caused a refusal may be in the same group,
 * and its commit may fail. If the transaction fails, each write is retried in a separate transaction, so that on a full
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
  readonly #dataVersion: Statement<unknown[], number>;
  /** Changes when another connection writes. */
  #version: number | undefined;

  /** @param beforeCommit runs before each commit; tests and benchmarks use it to add delays */
  constructor(db: Database, beforeCommit: () => void = () => {}) {
    this.#db = db;
    this.#beforeCommit = beforeCommit;
    this.#begin = db.prepare('begin immediate');
    this.#commit = db.prepare('commit');
    this.#rollback = db.prepare('rollback');
    this.#savepoint = db.prepare('savepoint unit');
    this.#release = db.prepare('release unit');
    this.#undo = db.prepare('rollback to unit');
    this.#dataVersion = db.prepare<unknown[], number>('pragma data_version').pluck();
    this.#version = this.#dataVersion.get();
  }

  define(id: number, sql: string): void {
    this.#sql.set(id, sql);
  }

  /** Reports whether another connection has written since the last group, or since the last call. */
  hasOutsideChange(): boolean {
    const version = this.#version;
    try {
      this.#version = this.#dataVersion.get();
    } catch {
      // The database cannot be read, so it is unknown whether it has changed.
      return true;
    }
    return this.#version !== version;
  }

  /**
   * Commits a group.
   * @param next returns the next write, or undefined to close the group
   * @throws LostSync
   */
  run(next: () => WireUnit | undefined): GroupOutcome {
    const units: WireUnit[] = [];
    const version = this.#version;
    try {
      const answers = this.#together(units, next);
      return { answers, commits: 1, outside: this.#version !== version };
    } catch (error) {
      if (error instanceof LostSync) throw error;
      // If the transaction could not begin, it has not taken a write from the caller.
      if (units.length === 0) for (let unit = next(); unit !== undefined; unit = next()) units.push(unit);
      return { ...this.#oneByOne(units, error), outside: this.#version !== version };
    }
  }

  /** Runs writes in one transaction. Appends writes from `next` to `units`. */
  #together(units: WireUnit[], next: () => WireUnit | undefined): Answer[] {
    const take = (savepoints: boolean) => () => {
      const answers = units.map((unit) => this.#unit(unit, savepoints));
      for (let unit = next(); unit !== undefined; unit = next()) {
        units.push(unit);
        answers.push(this.#unit(unit, savepoints));
      }
      return answers;
    };
    try {
      return this.#transaction(take(false));
    } catch (error) {
      if (!(error instanceof MissingSavepoint)) throw error;
      return this.#transaction(take(true));
    }
  }

  #oneByOne(units: readonly WireUnit[], groupError: unknown): Omit<GroupOutcome, 'outside'> {
    const answers: Answer[] = [];
    let commits = 0;
    // Does not retry while another process holds the lock, because each retry would also wait and fail.
    const hopeless = units.length === 1 || (groupError as { code?: unknown }).code === 'SQLITE_BUSY';
    for (const unit of units) {
      if (hopeless) {
        answers.push(failed(unit.id, groupError));
        continue;
      }
      try {
        answers.push(this.#transaction(() => this.#unit(unit, true)));
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
      this.#version = this.#dataVersion.get();
      const result = work();
      this.#beforeCommit();
      this.#commit.run();
      return result;
    } catch (error) {
      const cause = error instanceof GroupFailure ? error.failure : error;
      // After some errors, SQLite rolls back automatically.
      if (this.#db.inTransaction) this.#rollback.run();
      if (sqliteFailure(cause).kind === 'lost_sync')
        throw new LostSync(`failed to sync a commit to the disk: ${errorMessage(cause)}`);
      throw cause;
    }
  }

  /** @throws MissingSavepoint if the write must be undone and `savepoints` is false */
  #unit(unit: WireUnit, savepoints: boolean): Answer {
    const results: WireResult[] = [];
    const { statements } = unit;
    let open = false;
    let changed = false;
    const undo = () => {
      if (open) {
        this.#undo.run();
        this.#release.run();
      } else if (changed) throw new MissingSavepoint();
    };
    try {
      for (let index = 0; index < statements.length; index++) {
        const [query, values, expect] = statements[index]!;
        const { statement, writes } = this.#prepare(query);
        if (writes && savepoints && !open) {
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
        changed ||= changes > 0;
        if ((expect === 1 && changes === 0) || (expect === 2 && rows === 0) || (expect === 3 && rows > 0)) {
          undo();
          return { id: unit.id, outcome: 'refused', index };
        }
      }
      if (open) this.#release.run();
      return { id: unit.id, outcome: 'committed', results };
    } catch (error) {
      if (error instanceof MissingSavepoint) throw error;
      const { kind } = sqliteFailure(error);
      // All other errors, and errors that aborted the transaction, fail the whole group.
      if ((kind !== 'constraint' && kind !== 'bug') || !this.#db.inTransaction) throw new GroupFailure(error);
      undo();
      return failed(unit.id, error);
    }
  }

  #prepare(id: number): Prepared {
    const known = this.#prepared.get(id);
    if (known) return known;
    const sql = this.#sql.get(id);
    if (sql === undefined) throw new Error(`Query ${id} was not sent to the writer`);
    const statement = this.#db.prepare<unknown[]>(sql);
    const prepared = { statement, writes: !statement.readonly };
    this.#prepared.set(id, prepared);
    return prepared;
  }
}

function failed(id: number, error: unknown): Answer {
  const failure = sqliteFailure(error);
  const message = errorMessage(error);
  if (failure.kind === 'constraint') return { id, outcome: 'constraint', constraint: failure.constraint, message };
  // `lost_sync` was already thrown as LostSync.
  return { id, outcome: failure.kind === 'lost_sync' ? 'unavailable' : failure.kind, message };
}
