import { afterAll, beforeAll, beforeEach, describe } from 'vitest';
import { isSampling, sampled, seededRandom } from '../lib/test/sampled.ts';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import type { Orchestrator, Stage } from './stage.ts';

/**
 * Registers a suite for SQLite and for PostgreSQL: in `npm test` for one of them, which the seed of the run selects. If
 * PostgreSQL cannot run, its suite uses SQLite, or is skipped if there is already one for SQLite. With `CI=true`, it
 * fails.
 * @param suite gets a function that starts an orchestrator with a new database, and the name of the database
 */
export function describeAnyDatabase(
  name: string,
  suite: (startWith: (stage: Stage) => Promise<Orchestrator>, database: 'SQLite' | 'PostgreSQL') => void,
): void {
  const databases = sampled(['SQLite', 'PostgreSQL'] as const, 1, !isSampling(), seededRandom(name));
  const isWithSqlite = databases.includes('SQLite');
  if (isWithSqlite) describe(`${name} with SQLite`, () => suite((stage) => stage.orchestrator(), 'SQLite'));
  if (!databases.includes('PostgreSQL')) return;
  describe(`${name} with PostgreSQL${isWithSqlite ? '' : ', or SQLite if PostgreSQL cannot run'}`, () => {
    let server: PostgresServer | undefined;
    let missing: PostgresMissing | undefined;
    beforeAll(async () => {
      try {
        server = await startPostgres();
      } catch (error) {
        if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
        missing = error;
      }
    });
    beforeEach(({ skip }) => {
      if (missing && isWithSqlite) skip(missing.message);
    });
    afterAll(() => server?.stop());
    const start = async (stage: Stage): Promise<Orchestrator> => {
      if (server === undefined) return stage.orchestrator();
      return stage.orchestrator({ env: { MUSTER_DATABASE_URL: await server.createDatabase() } });
    };
    suite(start, 'PostgreSQL');
  });
}
