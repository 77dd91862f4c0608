import type { TestProject } from 'vitest/node';
import { openPostgres } from '../../src/store/postgres/postgres.ts';
import { testTime } from './database-time.ts';
import { PostgresMissing, startPostgres } from './postgres-server.ts';

/** What test files are told of the server that they share. */
export type SharedPostgres = { url: string; template: string } | { missing: string };

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: SharedPostgres;
  }
}

/**
 * For all test files of a run, before the first: one server, and on it a database with today's schema that others are
 * copied from. A server for each file and every migration for each test took a quarter of the suite's time.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // The package of the server ends a process that has nothing left to do with code 0, failed tests or not.
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
