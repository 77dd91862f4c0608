import { PostgresMissing, startPostgres } from '../../../orchestrator/test/databases/postgres-server.ts';

/** The storage of a bench: SQLite, or a dedicated PostgreSQL server. */
export interface BenchDatabase {
  /** URL of a PostgreSQL database; null for SQLite. */
  readonly url: string | null;
  /** Creates another database on the same server. @returns its URL; null for SQLite */
  another(): Promise<string | null>;
  stop(): Promise<void>;
}

/** Starts a bench's storage. @param kind `sqlite` or `postgres` */
export async function benchDatabase(kind: string): Promise<BenchDatabase> {
  if (kind === 'sqlite') return { url: null, another: async () => null, stop: async () => {} };
  if (kind !== 'postgres') throw new Error(`--database must be sqlite or postgres: ${kind}`);
  try {
    const server = await startPostgres();
    return { url: await server.createDatabase(), another: () => server.createDatabase(), stop: () => server.stop() };
  } catch (error) {
    if (!(error instanceof PostgresMissing)) throw error;
    throw new Error(`cannot start PostgreSQL: ${error.message}`);
  }
}
