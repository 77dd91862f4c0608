import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import { type Client, type ClientBase, Pool, type PoolClient, type QueryResult } from 'pg';
import { errorMessage } from '../../../../lib/src/error-message.ts';
import { ConstraintViolation, type Database, type DatabaseStats, OutcomeUnknown } from '../database.ts';
import { type MigrationProgress, type MigrationReport, SchemaRefused } from '../migrate.ts';
import { migrations as allMigrations } from '../migrations/index.ts';
import type { Migration } from '../migrations/migration.ts';
import { type BoundValue, storableText } from '../params.ts';
import { type AnyQuery, bind, type Query } from '../query.ts';
import type { StoredKey } from '../replicas.ts';
import { errorOfRequest, writeOfRequest } from '../request-outcome.ts';
import { type StatementResult, type Unit, UnitResult } from '../transaction.ts';
import { defaultWriteQueueLimits, sizeOf, WriteQueueLimiter, type WriteQueueLimits } from '../write-queue-limits.ts';
import { type MigratingFleet, migratePostgres, requireUsable } from './migrate-postgres.ts';
import { lockNotAvailable, postgresFailure } from './postgres-failure.ts';
import { type LockEvents, type LockMode, type PostgresLock, takePostgresLock } from './postgres-lock.ts';
import { rowTypes } from './postgres-row-types.ts';
import { connect, connectionSettings, connectTimeoutMs } from './postgres-settings.ts';

export interface PostgresOptions {
  /** The URL, in the form `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** Returns the current time in Unix seconds, for the migration records. */
  readonly now: () => number;
  /** Called when an idle connection has been lost. The pool opens a new connection. */
  readonly onConnectionError?: (error: Error) => void;
  /** Called after a commit with the transaction's duration. */
  readonly onCommit?: (units: number, ms: number) => void;
  readonly onProgress?: (progress: MigrationProgress) => void;
  readonly onMigrated?: (report: MigrationReport) => void;
  readonly limits?: WriteQueueLimits;
  /** Maximum number of connections for writes, and the same number for reads. */
  readonly maxConnections?: number;
  /** Seconds after which the server cancels a statement; no limit by default. */
  readonly statementTimeout?: number;
  /**
   * Prevents processes that must not share the database from using it at the same time. Tests leave it unset to use a
   * database from several processes.
   * @throws DatabaseInUse from {@link openPostgres}
   */
  readonly lock?: LockMode & LockEvents;
  /** Milliseconds for which rows may be cached while the lock is held. For tests. */
  readonly cacheMs?: number;
  /** Milliseconds without a heartbeat after which a replica without a lock is closed before a migration. For tests. */
  readonly closeAfterMs?: number;
  /** Milliseconds between attempts of a migration to lock a table that is in use. For tests. */
  readonly lockPauseMs?: number;
  /** Called with a warning about the server's configuration, for the log. */
  readonly onNotice?: (notice: string) => void;
  /** Returns a random number in [0, 1) that randomizes the delays of retries. */
  readonly random?: () => number;
  /**
   * Compares the keys of this replica with those of the other replicas before the database is migrated. Throws if they
   * differ.
   */
  readonly checkKeys?: (stored: readonly StoredKey[]) => void;
  /** Replaces the migrations of this release. For tests. */
  readonly migrations?: readonly Migration[];
}

/**
 * Default value of `cacheMs`. The lock excludes other Muster processes, but neither an operator's shell nor a server
 * that completes a commit after the connection was lost.
 */
const defaultCacheMs = 1_000;

/** Maximum number of attempts for a transaction that conflicts with other transactions. */
const maxAttempts = 30;

/** Maximum number of attempts for a statement that finds locked rows. Heartbeats lock theirs for milliseconds. */
const maxLockAttempts = 20;
/** Maximum number of milliseconds between these attempts. */
const maxLockPauseMs = 100;

/** Milliseconds after which a statement outside the write queue fails. A heartbeat that takes longer is useless. */
const singleTimeoutMs = 3_000;

const cleanList = (list: readonly string[] | readonly number[]): BoundValue =>
  list.map((item) => (typeof item === 'string' ? storableText(item) : item)) as string[] | number[];

/**
 * Opens a PostgreSQL database and migrates it.
 * @throws SchemaRefused if the database is from a newer release
 * @throws DatabaseInUse if `lock` is set and the database is in use by a process that must not share it
 */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const migrations = options.migrations ?? allMigrations;
  const mode = options.lock && {
    replica: options.lock.replica,
    schema: migrations.length,
    checkSchema: (of: ClientBase) => requireUsable(of, migrations),
  };
  const lock = options.lock && mode ? await takePostgresLock(options.url, mode, options.lock) : null;
  try {
    const client = await connect(connectionSettings({ url: options.url }));
    try {
      const { now, onProgress } = options;
      const durable = await judgeServer(client, options.onNotice);
      options.checkKeys?.(await storedKeys(client));
      const report = await migratePostgres(client, { migrations, now, onProgress, fleet: fleetOf(options, lock) });
      options.onMigrated?.(report);
      return new PostgresDatabase(options, lock, durable);
    } finally {
      await client.end();
    }
  } catch (error) {
    await lock?.release();
    throw error;
  }
}

function fleetOf(
  { lock: mode, closeAfterMs, lockPauseMs }: PostgresOptions,
  lock: PostgresLock | null,
): MigratingFleet | null {
  return lock === null || mode?.replica == null ? null : { others: (of) => lock.others(of), closeAfterMs, lockPauseMs };
}

/** Returns the fingerprints of the replicas' keys; none if the database is from a release without replicas. */
async function storedKeys(client: Client): Promise<StoredKey[]> {
  const table = await client.query<{ there: boolean }>(`select to_regclass('replica_keys') is not null as there`);
  if (!table.rows[0]?.there) return [];
  return (await client.query<StoredKey>('select kind, fingerprint from replica_keys')).rows;
}

/**
 * @returns whether the server acknowledges commits only after they are durable, by its configuration
 * @throws SchemaRefused if the database encoding cannot represent every text
 */
async function judgeServer(client: Client, notice: PostgresOptions['onNotice']): Promise<boolean> {
  const { rows } = await client.query<{ encoding: string; commit: string; fsync: string }>(
    `select current_setting('server_encoding') as encoding, current_setting('synchronous_commit') as commit,
       current_setting('fsync') as fsync`,
  );
  const { encoding, commit, fsync } = rows[0]!;
  if (encoding !== 'UTF8')
    throw new SchemaRefused(`The PostgreSQL database has the encoding ${encoding}; create one with encoding UTF8.`);
  if (fsync !== 'on')
    notice?.('the PostgreSQL server runs with fsync off: a power failure may lose or corrupt the database');
  return commit !== 'off';
}

class PostgresDatabase implements Database {
  readonly kind = 'postgres';
  readonly #writers: Pool;
  readonly #readers: Pool;
  /** The connection for statements that run outside the write queue. */
  readonly #single: Pool;
  readonly #onCommit: PostgresOptions['onCommit'];
  readonly #intake: WriteQueueLimiter;
  readonly #lock: PostgresLock | null;
  /** Whether this process is a replica, which shares the lock with other replicas. */
  readonly #sharesLock: boolean;
  readonly #random: () => number;
  readonly #underWay = new Set<Promise<unknown>>();
  /** The last transaction of each turn. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #unitsCommitted = 0;
  #unitsFailed = 0;
  #commits = 0;
  #retries = 0;
  #outsideChanges = 0;
  #acquisitions = 0;
  readonly #cacheMs: number;
  #cachedUntil = 0;
  #closing: Promise<void> | undefined;

  constructor(options: PostgresOptions, lock: PostgresLock | null, durable: boolean) {
    this.#lock = lock;
    this.#sharesLock = lock !== null && options.lock?.replica != null;
    // Other replicas write at any time, and clients expect to read their own writes at any replica.
    this.#cacheMs = options.cacheMs ?? (options.lock && options.lock.replica !== null ? 0 : defaultCacheMs);
    this.#random = options.random ?? Math.random;
    this.#intake = new WriteQueueLimiter(options.limits ?? defaultWriteQueueLimits);
    this.#onCommit = options.onCommit;
    const { url, statementTimeout } = options;
    const applicationName = lock?.applicationName;
    const settings = (server: Record<string, string>) => ({
      ...connectionSettings({ url, statementTimeout, applicationName, server }),
      max: options.maxConnections ?? 8,
      connectionTimeoutMillis: connectTimeoutMs,
      types: rowTypes,
    });
    const writing = {
      ...settings({
        ...(durable ? {} : { synchronous_commit: 'on' }),
        // Without this limit, a disconnected machine's transactions would hold locks for hours.
        idle_in_transaction_session_timeout: '60s',
      }),
      ...(lock ? { onConnect: (client: ClientBase) => lock.admit(client) } : {}),
    };
    this.#writers = new Pool(writing);
    this.#single = new Pool({ ...writing, max: 1, query_timeout: singleTimeoutMs });
    // A write through `get` or `all` is a bug and fails, as it does on SQLite.
    this.#readers = new Pool(settings({ default_transaction_read_only: 'on' }));
    for (const pool of this.#pools) pool.on('error', (error) => options.onConnectionError?.(error));
  }

  get #pools(): readonly Pool[] {
    return [this.#writers, this.#readers, this.#single];
  }

  async get<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row | undefined> {
    return (await this.all(query, params))[0];
  }

  async all<P, Row>(query: Query<P, Row>, params: NoInfer<P>): Promise<Row[]> {
    if (this.#closing) throw errorOfRequest(new MusterError('draining', 'The database is being closed'));
    const values = bind(query, 'postgres', params as object, cleanList);
    try {
      const { rows } = await this.#track(onFreshConnection(this.#readers, query, values));
      return rows as Row[];
    } catch (error) {
      const { kind } = postgresFailure(error);
      // 25006 is the error for a write in a read-only transaction.
      if (kind === 'bug' || kind === 'constraint' || (error as { code?: unknown }).code === '25006')
        throw new Error(`Query ${query.name} failed: ${errorMessage(error)}`, { cause: error });
      const detail = `The database could not be read: ${errorMessage(error)}`;
      throw errorOfRequest(new MusterError('storage_unavailable', detail));
    }
  }

  alone<P, Row>(query: Query<P, Row>, params: NoInfer<P> & object): Promise<StatementResult<Row>> {
    return writeOfRequest(this.#alone(query, params));
  }

  async #alone<P, Row>(query: Query<P, Row>, params: NoInfer<P> & object): Promise<StatementResult<Row>> {
    if (this.#closing) throw new MusterError('draining', 'The database is being closed');
    // A replica that cannot write sends no heartbeats, so that other replicas take over its work.
    if (this.#sharesLock) this.#requireLock();
    const values = bind(query, 'postgres', params, cleanList);
    try {
      const answer = await this.#track(this.#unlocked(query, values));
      return resultOf(answer) as StatementResult<Row>;
    } catch (error) {
      if (error instanceof MusterError) throw error;
      if (postgresFailure(error).kind === 'gone') throw new OutcomeUnknown(query.name, errorMessage(error));
      throw errorOf(query, error);
    }
  }

  /** Runs one statement. Repeats it if it does not wait for rows that another transaction has locked. */
  async #unlocked(query: AnyQuery, values: readonly BoundValue[]): Promise<QueryResult> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await onFreshConnection(this.#single, query, values);
      } catch (error) {
        if ((error as { code?: unknown }).code !== lockNotAvailable) throw error;
        if (attempt === maxLockAttempts)
          throw new MusterError(
            'storage_unavailable',
            `${query.name} found rows that another transaction has locked ${attempt} times; nothing was changed`,
          );
        this.#retries++;
        await sleep(this.#random() * maxLockPauseMs);
      }
    }
  }

  write(unit: Unit): Promise<UnitResult> {
    return writeOfRequest(this.#write(unit), unit.statements);
  }

  async #write(unit: Unit): Promise<UnitResult> {
    const bound = unit.statements.map(({ query, params }) => bind(query, 'postgres', params, cleanList));
    if (bound.length === 0) return new UnitResult(unit, []);
    this.#requireLock();
    const bytes = bound.reduce((sum, values) => sum + sizeOf(values), 0);
    this.#intake.admit(bytes, unit.ofAgent);
    try {
      const result = await this.#track(this.#inTurn(unit, bound));
      this.#unitsCommitted++;
      return result;
    } catch (error) {
      this.#unitsFailed++;
      throw error;
    } finally {
      this.#intake.release(bytes, unit.ofAgent);
    }
  }

  #requireLock(): void {
    if (this.#lock?.held === false)
      throw new MusterError('storage_unavailable', 'The database server cannot be reached; nothing was changed');
  }

  /** Runs the transaction after the earlier ones with the same turn, which would conflict with it. */
  #inTurn(unit: Unit, bound: readonly BoundValue[][]): Promise<UnitResult> {
    const { turn } = unit;
    if (turn === undefined) return this.#attempts(unit, bound);
    const run = () => {
      // The connection may have been lost while the transaction waited.
      this.#requireLock();
      return this.#attempts(unit, bound);
    };
    const result = (this.#turns.get(turn) ?? Promise.resolve()).then(run, run);
    this.#turns.set(turn, result);
    const forget = () => {
      if (this.#turns.get(turn) === result) this.#turns.delete(turn);
    };
    result.then(forget, forget);
    return result;
  }

  /** Retries the transaction as long as it conflicts with other transactions. */
  async #attempts(unit: Unit, bound: readonly BoundValue[][]): Promise<UnitResult> {
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#transaction(unit, bound);
      if (outcome instanceof UnitResult) return outcome;
      if (attempt === maxAttempts)
        throw new MusterError(
          'storage_unavailable',
          `${unit.name} conflicted with other transactions ${attempt} times; nothing was changed`,
        );
      this.#retries++;
      await sleep(this.#random() * Math.min(200, 2 ** attempt));
    }
  }

  /** @returns undefined after a serialization conflict */
  async #transaction(unit: Unit, bound: readonly BoundValue[][]): Promise<UnitResult | undefined> {
    let client: PoolClient;
    try {
      client = await this.#writers.connect();
    } catch (error) {
      throw errorOf(unit, error);
    }
    // A connection that is lost between two queries emits an error. The next query then rejects with the same error.
    const ignore = () => undefined;
    client.on('error', ignore);
    const startedAt = performance.now();
    let committing = false;
    let broken: Error | undefined;
    try {
      await client.query('begin isolation level serializable');
      const results: StatementResult[] = [];
      for (const [index, statement] of unit.statements.entries()) {
        const answer = await client.query(prepared(statement.query, bound[index]!));
        const result = resultOf(answer);
        if (!isMet(statement.expect, result)) {
          await client.query('rollback');
          throw new MusterError(statement.else ?? 'internal', statement.detail);
        }
        results.push(result);
      }
      committing = true;
      await client.query('commit');
      this.#commits++;
      this.#onCommit?.(1, performance.now() - startedAt);
      return new UnitResult(unit, results);
    } catch (error) {
      if (error instanceof MusterError) throw error;
      const { kind } = postgresFailure(error);
      if (kind === 'gone' || kind === 'stale') {
        // The server rolls back when the connection closes.
        broken = error as Error;
        if (committing && kind === 'gone') throw new OutcomeUnknown(unit.name, errorMessage(error));
      } else if (!committing)
        // If the rollback fails, discards the connection. The server rolls back when the connection closes.
        await client.query('rollback').catch((failure: Error) => {
          broken = failure;
        });
      if (kind === 'again' || kind === 'stale') return undefined;
      throw errorOf(unit, error);
    } finally {
      client.off('error', ignore);
      client.release(broken);
    }
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
  }

  outsideChanges(): number {
    const lock = this.#lock;
    const now = performance.now();
    if (!lock?.held || lock.acquisitions !== this.#acquisitions || now >= this.#cachedUntil) {
      this.#acquisitions = lock?.acquisitions ?? 0;
      this.#cachedUntil = now + this.#cacheMs;
      this.#outsideChanges++;
    }
    return this.#outsideChanges;
  }

  stats(): DatabaseStats {
    return {
      queued: this.#intake.units,
      queuedBytes: this.#intake.bytes,
      unitsCommitted: this.#unitsCommitted,
      unitsFailed: this.#unitsFailed,
      commits: this.#commits,
      retries: this.#retries,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#intake.close();
    await Promise.allSettled(this.#underWay);
    await Promise.all(this.#pools.map((pool) => pool.end()));
    await this.#lock?.release();
  }
}

/** Returns a named prepared statement, so that each connection prepares it only once. */
function prepared(query: AnyQuery, values: readonly BoundValue[]) {
  return { name: `q${query.id}`, text: query.compiled('postgres').sql, values: values as unknown[] };
}

/**
 * Runs one statement. If another process has migrated the database, runs the statement again on a new connection, which
 * prepares it again. The pool closes a connection after an error.
 */
async function onFreshConnection(pool: Pool, query: AnyQuery, values: readonly BoundValue[]): Promise<QueryResult> {
  for (let left = pool.options.max; ; left--) {
    try {
      return await pool.query(prepared(query, values));
    } catch (error) {
      if (left === 0 || postgresFailure(error).kind !== 'stale') throw error;
    }
  }
}

function resultOf(answer: QueryResult): StatementResult {
  return { rows: answer.rows, changes: answer.command === 'SELECT' ? 0 : (answer.rowCount ?? 0) };
}

function isMet(expect: Unit['statements'][number]['expect'], { rows, changes }: StatementResult): boolean {
  if (expect === 'changed') return changes > 0;
  if (expect === 'row') return rows.length > 0;
  if (expect === 'no_row') return rows.length === 0;
  return true;
}

function errorOf(unit: { readonly name: string }, error: unknown): Error {
  const failure = postgresFailure(error);
  const message = errorMessage(error);
  switch (failure.kind) {
    case 'constraint':
      return new ConstraintViolation(failure.constraint, unit.name, message);
    case 'full':
      return new MusterError('storage_full', 'No space left for the database; nothing was changed');
    case 'bug':
      return new Error(`${unit.name} failed: ${message}`, { cause: error });
    default:
      return new MusterError('storage_unavailable', `The database refused the write: ${message}; nothing was changed`);
  }
}
