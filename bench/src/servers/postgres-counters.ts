import { Client } from 'pg';
import { cpuSecsWithChildren } from './server-process.ts';

/** Work of a PostgreSQL server since its start. */
export interface PostgresCounters {
  /** CPU time of all its processes, in seconds. */
  databaseCpuSecs: number;
  /** Committed transactions, including those that only read. A statement outside of a transaction counts as one. */
  commits: number;
  /** Transactions that were rolled back, such as those that PostgreSQL could not serialize. */
  rollbacks: number;
  /** Transactions that wrote, committed or not. */
  writes: number;
  /** Inserted, updated, and deleted rows. */
  rows: number;
}

const counters = `
  select xact_commit::float8 as commits, xact_rollback::float8 as rollbacks, numbackends::int as connections,
    (select sum(n_tup_ins + n_tup_upd + n_tup_del)::float8 from pg_stat_user_tables) as rows,
    pg_snapshot_xmax(pg_current_snapshot())::text::float8 as writes
  from pg_stat_database where datname = current_database()`;

/**
 * Reads the statistics of a database, as a superuser of its server. Processes of PostgreSQL report their work once a
 * second while they are busy, and up to ten seconds later when they are idle.
 */
export class PostgresStatistics {
  readonly #client: Client;
  readonly #pid: number;

  private constructor(client: Client, pid: number) {
    this.#client = client;
    this.#pid = pid;
  }

  /** @param url URL of the database, which should be the only one on its server that is used */
  static async open(url: string): Promise<PostgresStatistics> {
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<{ file: string }>("select pg_read_file('postmaster.pid') as file");
    return new PostgresStatistics(client, Number.parseInt(rows[0]!.file, 10));
  }

  async read(): Promise<PostgresCounters & { connections: number }> {
    const { rows } = await this.#client.query<Omit<PostgresCounters, 'databaseCpuSecs'> & { connections: number }>(
      counters,
    );
    return { ...rows[0]!, databaseCpuSecs: cpuSecsWithChildren(this.#pid) };
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}
