import { Worker } from 'node:worker_threads';
import { MusterError } from '@muster/protocol';
import type { Database as Connection, Statement as Prepared } from 'better-sqlite3';
import { ConstraintViolation, type Database, type DatabaseStats, OutcomeUnknown } from '../database.ts';
import type { MigrationProgress, MigrationReport } from '../migrate.ts';
import { migrations as allMigrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import { type BoundValue, storableText } from '../params.ts';
import { type AnyQuery, bind, type Query } from '../query.ts';
import { errorOfRequest, writeOfRequest } from '../request-outcome.ts';
import { type Expectation, type StatementResult, statement, type Unit, UnitResult } from '../transaction.ts';
import { defaultWriteQueueLimits, sizeOf, WriteQueueLimiter, type WriteQueueLimits } from '../write-queue-limits.ts';
import { migrateSqlite } from './migrate-sqlite.ts';
import { openSqliteReader } from './sqlite-connection.ts';
import { sqliteFailure } from './sqlite-failure.ts';
import {
  type Answer,
  answersIn,
  type FromWriter,
  flatUnits,
  type ToWriter,
  type WireExpectation,
  type WireStatement,
  type WireUnit,
} from './sqlite-message.ts';
import type { WriterOptions } from './sqlite-writer.ts';

export interface SqliteOptions {
  /** The database file. Its directory must exist. */
  readonly file: string;
  /** Returns the current time in Unix seconds, for the migration records. */
  readonly now: () => number;
  /**
   * Called when the writer has failed. The process must exit, because it is unknown whether pending writes were
   * committed.
   */
  readonly onFatal: (reason: Error) => void;
  /** Called after a commit with the number of writes that shared the transaction, and its duration. */
  readonly onCommit?: (units: number, ms: number) => void;
  readonly onProgress?: (progress: MigrationProgress) => void;
  readonly onMigrated?: (report: MigrationReport) => void;
  readonly limits?: WriteQueueLimits;
  /** Maximum number of writes per commit. */
  readonly maxGroupUnits?: number;
  /** Maximum number of milliseconds to collect writes for one commit. */
  readonly maxGroupMs?: number;
  /** Minimum duration of a commit in milliseconds. For tests and benchmarks. */
  readonly commitDelayMs?: number;
  /** Replaces the script of the writer thread. For tests. */
  readonly writer?: URL;
  /** Replaces the migrations of this release. For tests. */
  readonly migrations?: readonly Migration[];
}

/** A write that was sent to the writer but has no result yet. */
interface Waiting {
  readonly unit: Unit;
  readonly bytes: number;
  readonly resolve: (result: UnitResult) => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Maximum number of results to deliver per event-loop turn. Each result resumes a caller, so a whole group would block
 * other work for too long.
 */
const answersPerTurn = 100;

/** Maximum number of milliseconds for which reads share a snapshot and do not see writes by other processes. */
const snapshotMs = 10;

const wireExpectations: Readonly<Record<Expectation, WireExpectation>> = { changed: 1, row: 2, no_row: 3 };

const listAsJson = (list: readonly string[] | readonly number[]): BoundValue =>
  JSON.stringify(list.map((item) => (typeof item === 'string' ? storableText(item) : item)));

/**
 * Migrates the database file, starts the writer thread, and opens the reading connection.
 * @throws SchemaRefused if the file is from a newer release
 */
export async function openSqlite(options: SqliteOptions): Promise<Database> {
  const report = migrateSqlite(options.file, {
    migrations: options.migrations ?? allMigrations,
    now: options.now,
    onProgress: options.onProgress,
  });
  options.onMigrated?.(report);
  const writerOptions: WriterOptions = {
    file: options.file,
    maxGroupUnits: options.maxGroupUnits ?? 1_000,
    maxGroupMs: options.maxGroupMs ?? 20,
    commitDelayMs: options.commitDelayMs ?? 0,
  };
  const worker = new Worker(options.writer ?? new URL('./sqlite-writer.ts', import.meta.url), {
    workerData: writerOptions,
    name: 'sqlite-writer',
  });
  await new Promise<void>((resolve, reject) => {
    worker.once('message', () => {
      worker.off('error', reject);
      resolve();
    });
    worker.once('error', reject);
  });
  return new SqliteDatabase(openSqliteReader(options.file), worker, options);
}

class SqliteDatabase implements Database {
  readonly kind = 'sqlite';
  readonly #reader: Connection;
  readonly #worker: Worker;
  readonly #onFatal: (reason: Error) => void;
  readonly #onCommit: SqliteOptions['onCommit'];
  readonly #intake: WriteQueueLimiter;
  readonly #prepared = new Map<number, Prepared<unknown[]>>();
  readonly #begin: Prepared<unknown[]>;
  readonly #commit: Prepared<unknown[]>;
  readonly #dataVersion: Prepared<unknown[], number>;
  /** The reader's `data_version` after the last known write. Every write by another connection changes it. */
  #version: number | undefined;
  #versionReadAt = 0;
  #outsideChanges = 0;
  /**
   * Whether `#version` may include a write by another process. Only the writer can distinguish such a write from writes
   * by this process.
   */
  #isVersionMixed = false;
  /**
   * Whether reads share a snapshot. During many writes, a new snapshot for each read would cost far more than the reads
   * themselves, because it must locate all pages again after every commit. The snapshot ends before the result of any
   * write by this process is delivered, so that callers see their writes, and after `snapshotMs`, so that writes by
   * other processes become visible.
   */
  #inSnapshot = false;
  #snapshotTimer: NodeJS.Timeout | undefined;
  /** IDs of queries whose SQL has been sent to the writer. */
  readonly #sentQueries = new Set<number>();
  readonly #waiting = new Map<number, Waiting>();
  #newQueries: [id: number, sql: string][] = [];
  #outbox: WireUnit[] = [];
  /** Received results. Results before `#nextAnswer` have already been delivered. */
  #answers: Answer[] = [];
  #nextAnswer = 0;
  #lastId = 0;
  #unitsCommitted = 0;
  #unitsFailed = 0;
  #commits = 0;
  #lost: Error | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;

  constructor(reader: Connection, worker: Worker, options: SqliteOptions) {
    this.#reader = reader;
    this.#begin = reader.prepare('begin');
    this.#commit = reader.prepare('commit');
    this.#dataVersion = reader.prepare<unknown[], number>('pragma data_version').pluck();
    this.#version = this.#dataVersion.get();
    this.#worker = worker;
    this.#onFatal = options.onFatal;
    this.#onCommit = options.onCommit;
    this.#intake = new WriteQueueLimiter(options.limits ?? defaultWriteQueueLimits);
    worker.on('message', (message: FromWriter) => this.#hear(message));
    worker.on('error', (error) => this.#lose(error));
    worker.on('exit', (code) => {
      if (!this.#closed) this.#lose(new Error(`The database writer ended with code ${code}`));
    });
  }

  async get<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row | undefined> {
    return this.#read(query, params as object, (prepared, values) => prepared.get(...values)) as Row | undefined;
  }

  async all<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row[]> {
    return this.#read(query, params as object, (prepared, values) => prepared.all(...values)) as Row[];
  }

  #read(query: AnyQuery, params: object, run: (prepared: Prepared<unknown[]>, values: BoundValue[]) => unknown) {
    if (this.#closing) throw errorOfRequest(new MusterError('draining', 'The database is being closed'));
    const values = bind(query, 'sqlite', params, listAsJson);
    try {
      let prepared = this.#prepared.get(query.id);
      if (!prepared) {
        prepared = this.#reader.prepare<unknown[]>(query.compiled('sqlite').sql);
        this.#prepared.set(query.id, prepared);
      }
      if (!this.#inSnapshot) {
        this.#begin.run();
        this.#inSnapshot = true;
        this.#snapshotTimer ??= setTimeout(() => this.#endSnapshot(), snapshotMs).unref();
        this.#snapshotTimer.refresh();
      }
      return run(prepared, values);
    } catch (error) {
      const { kind } = sqliteFailure(error);
      // SQLITE_READONLY is the error for a write through a read-only connection.
      if (kind === 'bug' || (error as { code?: unknown }).code === 'SQLITE_READONLY')
        throw new Error(`Query ${query.name} failed: ${(error as Error).message}`, { cause: error });
      const detail = `The database could not be read: ${(error as Error).message}`;
      throw errorOfRequest(new MusterError('storage_unavailable', detail));
    }
  }

  #endSnapshot(): void {
    if (!this.#inSnapshot) return;
    this.#inSnapshot = false;
    // A failed read may have aborted the transaction.
    if (this.#reader.inTransaction) this.#commit.run();
  }

  outsideChanges(): number {
    // Writes by this process also change the version. The writer thread detects writes by other processes between its
    // groups.
    if (this.#waiting.size > 0 || performance.now() - this.#versionReadAt < snapshotMs) return this.#outsideChanges;
    if (this.#isVersionMixed) {
      this.#isVersionMixed = false;
      this.#post({ kind: 'look' });
    }
    const version = this.#version;
    this.#readVersion();
    if (version !== this.#version) this.#outsideChanges++;
    return this.#outsideChanges;
  }

  /** Counts a change, and ends the snapshot so that later reads see it. */
  #countOutsideChange(): void {
    this.#endSnapshot();
    this.#outsideChanges++;
  }

  #readVersion(): void {
    this.#endSnapshot();
    this.#versionReadAt = performance.now();
    try {
      this.#version = this.#dataVersion.get();
    } catch {
      // The database is closed or cannot be read, so it is unknown whether it has changed.
      this.#version = undefined;
      this.#outsideChanges++;
    }
  }

  async alone<P, Row>(query: Query<P, Row>, params: NoInfer<P> & object): Promise<StatementResult<Row>> {
    const only = statement(query, params);
    return (await this.write({ name: query.name, statements: [only] })).of(only);
  }

  write(unit: Unit): Promise<UnitResult> {
    return writeOfRequest(this.#write(unit), unit.statements);
  }

  async #write(unit: Unit): Promise<UnitResult> {
    if (this.#lost) throw new MusterError('storage_unavailable', 'The database writer has failed; nothing was changed');
    let bytes = 0;
    const statements = unit.statements.map(({ query, params, expect }): WireStatement => {
      const values = bind(query, 'sqlite', params, listAsJson);
      bytes += sizeOf(values);
      if (!this.#sentQueries.has(query.id)) {
        this.#sentQueries.add(query.id);
        this.#newQueries.push([query.id, query.compiled('sqlite').sql]);
      }
      return [query.id, values, expect ? wireExpectations[expect] : 0];
    });
    if (statements.length === 0) return new UnitResult(unit, []);
    this.#intake.admit(bytes, unit.ofAgent);
    const id = ++this.#lastId;
    // Sends all writes from this event-loop turn in one message.
    if (this.#outbox.length === 0) setImmediate(() => this.#send());
    this.#outbox.push({ id, statements });
    return new Promise<UnitResult>((resolve, reject) => this.#waiting.set(id, { unit, bytes, resolve, reject }));
  }

  #send(): void {
    if (this.#outbox.length === 0) return;
    this.#post({ kind: 'units', queries: this.#newQueries, units: flatUnits(this.#outbox) });
    this.#newQueries = [];
    this.#outbox = [];
  }

  #post(message: ToWriter): void {
    this.#worker.postMessage(message);
  }

  #hear(message: FromWriter): void {
    if (message.kind === 'answers') {
      const answers = answersIn(message.answers);
      this.#commits += message.commits;
      if (message.outside) this.#countOutsideChange();
      if (message.commits > 0) this.#onCommit?.(answers.length / message.commits, message.ms / message.commits);
      // Delivers results in a later turn, because many messages may arrive in one turn.
      if (this.#answers.length === 0) setImmediate(() => this.#passOn(answersPerTurn));
      for (const answer of answers) this.#answers.push(answer);
    } else if (message.kind === 'outside') this.#countOutsideChange();
    else if (message.kind === 'fatal') this.#lose(new Error(message.message));
    else if (message.kind === 'closed') {
      this.#passOn(Number.POSITIVE_INFINITY);
      this.#closed?.();
    }
  }

  #passOn(limit: number): void {
    // Ends the snapshot, because the callers that receive these results must see their writes.
    this.#readVersion();
    this.#isVersionMixed = true;
    const end = Math.min(this.#answers.length, this.#nextAnswer + limit);
    while (this.#nextAnswer < end) this.#settle(this.#answers[this.#nextAnswer++]!);
    if (this.#nextAnswer < this.#answers.length) {
      setImmediate(() => this.#passOn(answersPerTurn));
      return;
    }
    this.#answers = [];
    this.#nextAnswer = 0;
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return;
    this.#waiting.delete(answer.id);
    this.#intake.release(waiting.bytes, waiting.unit.ofAgent);
    const { unit, resolve, reject } = waiting;
    if (answer.outcome === 'committed') {
      this.#unitsCommitted++;
      const results = answer.results.map((result) =>
        typeof result === 'number' ? { rows: [], changes: result } : result,
      );
      resolve(new UnitResult(unit, results));
      return;
    }
    this.#unitsFailed++;
    reject(errorOf(unit, answer));
  }

  /** Rejects pending writes, whose outcome is unknown. The process must exit. */
  #lose(reason: Error): void {
    if (this.#lost) return;
    this.#lost = reason;
    this.#intake.close();
    this.#outbox = [];
    // Delivers the results that have arrived, because the outcome of these writes is known.
    this.#passOn(Number.POSITIVE_INFINITY);
    this.#onFatal(reason);
    for (const { unit, reject } of this.#waiting.values()) reject(new OutcomeUnknown(unit.name, reason.message));
    this.#waiting.clear();
    this.#closed?.();
  }

  stats(): DatabaseStats {
    return {
      queued: this.#intake.units,
      queuedBytes: this.#intake.bytes,
      unitsCommitted: this.#unitsCommitted,
      unitsFailed: this.#unitsFailed,
      commits: this.#commits,
      retries: 0,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#intake.close();
    this.#endSnapshot();
    const closed = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    if (!this.#lost) {
      this.#send();
      // Closes the reader first, because only closing the last connection checkpoints the log.
      this.#reader.close();
      this.#post({ kind: 'close' });
      await closed;
    } else this.#reader.close();
    await this.#worker.terminate();
  }
}

function errorOf(unit: Unit, answer: Exclude<Answer, { outcome: 'committed' }>): Error {
  switch (answer.outcome) {
    case 'refused': {
      const statement = unit.statements[answer.index];
      return new MusterError(statement?.else ?? 'internal', statement?.detail);
    }
    case 'constraint':
      return new ConstraintViolation(answer.constraint, unit.name, answer.message);
    case 'full':
      return new MusterError('storage_full', 'No space left for the database; nothing was changed');
    case 'unavailable':
      return new MusterError(
        'storage_unavailable',
        `The database refused the write: ${answer.message}; nothing was changed`,
      );
    case 'bug':
      return new Error(`${unit.name} failed: ${answer.message}`);
  }
}
