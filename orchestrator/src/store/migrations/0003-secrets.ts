import type { Migration } from './migration.ts';

/** Secrets, encrypted. */
export const secrets: Migration = { version: 3, name: 'secrets', statements: () => [] };
