import { createIndex } from '../create-table.ts';
import type { Migration } from './migration.ts';

/** Adds an index for a list of runs of one kind, which may be a small part of a long history. */
export const runsByKind: Migration = {
  version: 36,
  name: 'runs by kind',
  // Earlier releases ignore the index.
  compatibleFrom: 29,
  statements: (build) => [createIndex(build, 'runs_kind', 'runs', ['kind', 'run_id'])],
};
