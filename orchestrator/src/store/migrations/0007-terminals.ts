import type { Migration } from './migration.ts';

/** Terminal sessions and what is known of samples. */
export const terminals: Migration = { version: 7, name: 'terminals', statements: () => [] };
