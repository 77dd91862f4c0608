import type { Migration } from './migration.ts';

/** What is needed to tell when an agent is lost. */
export const presence: Migration = { version: 8, name: 'presence', statements: () => [] };
