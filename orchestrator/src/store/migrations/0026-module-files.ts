import { createIndex, createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds tables for the files next to modules: the files of each revision, and their contents in pieces. Each content is
 * stored once.
 */
export const moduleFiles: Migration = {
  version: 26,
  name: 'module files',
  statements: (build) => [
    createTable(build, 'contents', {
      columns: { sha256: 'text', content_id: 'text', size: 'integer' },
      primaryKey: ['sha256'],
      unique: ['content_id'],
    }),
    // The pieces of a file are written before the file's hash is known, so they have a separate ID.
    createTable(build, 'content_pieces', {
      columns: { content_id: 'text', position: 'integer', bytes: 'bytes' },
      primaryKey: ['content_id', 'position'],
    }),
    createTable(build, 'module_files', {
      columns: {
        name: 'text',
        revision: 'integer',
        path: 'text',
        sha256: 'text',
        size: 'integer',
        executable: 'integer',
      },
      primaryKey: ['name', 'revision', 'path'],
    }),
    createIndex(build, 'module_files_content', 'module_files', ['sha256']),
  ],
};
