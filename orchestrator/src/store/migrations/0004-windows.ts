import type { Migration } from './migration.ts';

/** Maintenance windows, and codes to sign in on the web. */
export const windows: Migration = { version: 4, name: 'windows', statements: () => [] };
