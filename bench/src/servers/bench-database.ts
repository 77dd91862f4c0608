import { PostgresMissing, startPostgres } from '../../../orchestrator/test/databases/postgres-server.ts';

/** The storage of a bench: files, or its own PostgreSQL server. */
export interface BenchDatabase {
  /** Null: SQLite. */
  readonly url: string | null;
  /** A fresh database on the same server; null: SQLite. */
  another(): Promise<string | null>;
  stop(): Promise<void>;
}

/** @param kind `sqlite` or `postgres` */
export async function benchDatabase(kind: string): Promise<BenchDatabase> {
  if (kind === 'sqlite') return { url: null, another: async () => null, stop: async () => {} };
  if (kind !== 'postgres') throw new Error(`--database is sqlite or postgres, not ${kind}`);
  try {
    const server = await startPostgres();
    return { url: await server.createDatabase(), another: () => server.createDatabase(), stop: () => server.stop() };
  } catch (error) {
    if (!(error instanceof PostgresMissing)) throw error;
    throw new Error(`PostgreSQL cannot run here, so nothing was measured: ${error.message}`);
  }
}
