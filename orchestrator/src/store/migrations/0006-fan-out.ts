import type { Migration } from './migration.ts';

/** What a run needs to halt, wait and be bound to a plan. */
export const fanOut: Migration = { version: 6, name: 'fan-out', statements: () => [] };
