import { type ExpressionBuilder, sql } from 'kysely';
import { defineQuery } from '../query.ts';
import type { Schema } from '../schema.ts';

/** Contents of the files that belong to modules. */

export const insertPiece = defineQuery(
  'contents/insert piece',
  (db, p: { content_id: string; position: number; bytes: Uint8Array }) =>
    db.insertInto('content_pieces').values({ content_id: p.content_id, position: p.position, bytes: p.bytes }),
);

export const contentsByHash = defineQuery('contents/by hash', (db, p: { hashes: readonly string[] }, d) =>
  db.selectFrom('contents').selectAll().where(d.isIn('sha256', p.hashes)),
);

export const contentPiece = defineQuery('contents/piece', (db, p: { sha256: string; position: number }) =>
  db
    .selectFrom('contents')
    .innerJoin('content_pieces', 'content_pieces.content_id', 'contents.content_id')
    .select('content_pieces.bytes')
    .where('contents.sha256', '=', p.sha256)
    .where('content_pieces.position', '=', p.position),
);

export const writtenPiece = defineQuery('contents/written piece', (db, p: { content_id: string; position: number }) =>
  db
    .selectFrom('content_pieces')
    .select('bytes')
    .where('content_id', '=', p.content_id)
    .where('position', '=', p.position),
);

/**
 * Stores contents whose pieces have already been written. Does not replace existing contents.
 * @param p.rows `{sha256, content_id, size}`, created by `jsonRows`
 */
export const insertContents = defineQuery('contents/insert', (db, p: { rows: string }, d) =>
  db
    .insertInto('contents')
    .columns(['sha256', 'content_id', 'size'])
    .expression(
      db
        .selectFrom(d.rowsOf(p.rows, { sha256: 'text', content_id: 'text', size: 'integer' }).as('r'))
        .selectAll()
        .where(sql.lit(true)),
    )
    .onConflict((c) => c.column('sha256').doNothing()),
);

/** @param p.rows `{name, revision, path, sha256, size, executable}`, created by `jsonRows` */
export const insertModuleFiles = defineQuery('contents/insert module files', (db, p: { rows: string }, d) =>
  db
    .insertInto('module_files')
    .columns(['name', 'revision', 'path', 'sha256', 'size', 'executable'])
    .expression(
      db
        .selectFrom(
          d
            .rowsOf(p.rows, {
              name: 'text',
              revision: 'integer',
              path: 'text',
              sha256: 'text',
              size: 'integer',
              executable: 'integer',
            })
            .as('r'),
        )
        .selectAll(),
    ),
);

export const moduleFiles = defineQuery('contents/module files', (db, p: { name: string; revision: number }) =>
  db
    .selectFrom('module_files')
    .select(['path', 'sha256', 'size', 'executable'])
    .where('name', '=', p.name)
    .where('revision', '=', p.revision)
    .orderBy('path'),
);

/** Names of removed modules whose files are still stored. */
export const removedWithFiles = defineQuery('contents/removed with files', (db) =>
  db
    .selectFrom('module_files')
    .select('name')
    .distinct()
    .where((w) =>
      w.not(
        w.exists(w.selectFrom('modules').select('modules.name').whereRef('modules.name', '=', 'module_files.name')),
      ),
    ),
);

/** Deletes the files of all revisions of a module, unless the module has been created again. */
export const deleteFilesOfRemoved = defineQuery('contents/delete files of removed', (db, p: { name: string }) =>
  db
    .deleteFrom('module_files')
    .where('name', '=', p.name)
    .where((w) => w.not(w.exists(w.selectFrom('modules').select('modules.name').where('modules.name', '=', p.name)))),
);

/** An open operation whose modules match the given pattern, which contains a quoted name. */
export const openOperationWith = defineQuery('contents/open operation with', (db, p: { pattern: string }) =>
  db
    .selectFrom('operations')
    .select('operation_id')
    .where('status', 'in', ['queued', 'running'])
    .where('modules', 'like', p.pattern as never)
    .limit(1),
);

/** The basis of each run that has not ended. */
export const basesOfOpenRuns = defineQuery('contents/bases of open runs', (db) =>
  db
    .selectFrom('runs')
    .innerJoin('run_bases', 'run_bases.run_id', 'runs.run_id')
    .select('run_bases.basis')
    .where('runs.finished_at', 'is', null),
);

/** For preconditions: returns a row if a file of the revision has no content. */
export const fileWithoutContent = defineQuery(
  'contents/file without content',
  (db, p: { name: string; revision: number }) =>
    db
      .selectFrom('module_files')
      .leftJoin('contents', 'contents.sha256', 'module_files.sha256')
      .select('module_files.path')
      .where('module_files.name', '=', p.name)
      .where('module_files.revision', '=', p.revision)
      .where('contents.sha256', 'is', null)
      .limit(1),
);

const isUnneeded = (w: ExpressionBuilder<Schema, 'contents'>) =>
  w.not(w.exists(w.selectFrom('module_files').select('path').whereRef('module_files.sha256', '=', 'contents.sha256')));

/** Contents that no module revision needs. */
export const unneededContents = defineQuery('contents/unneeded', (db, p: { limit: number }) =>
  db.selectFrom('contents').select('sha256').where(isUnneeded).limit(p.limit),
);

/** Deletes contents, except those that are needed again. */
export const deleteContents = defineQuery('contents/delete', (db, p: { hashes: readonly string[] }, d) =>
  db.deleteFrom('contents').where(d.isIn('sha256', p.hashes)).where(isUnneeded),
);

const isOrphan = (w: ExpressionBuilder<Schema, 'content_pieces'>) =>
  w.not(
    w.exists(
      w
        .selectFrom('contents')
        .select('contents.sha256')
        .whereRef('contents.content_id', '=', 'content_pieces.content_id'),
    ),
  );

/** Pieces that do not belong to any stored content and whose upload began before `below`, in any order. */
export const orphanPieces = defineQuery('contents/orphan pieces', (db, p: { below: string; limit: number }) =>
  db
    .selectFrom('content_pieces')
    .select(['content_id', 'position'])
    .where('content_id', '<', p.below)
    .where(isOrphan)
    .limit(p.limit),
);

/** Deletes a range of pieces that do not belong to any stored content. */
export const deletePieces = defineQuery(
  'contents/delete pieces',
  (db, p: { content_id: string; from: number; below: number }) =>
    db
      .deleteFrom('content_pieces')
      .where('content_id', '=', p.content_id)
      .where('position', '>=', p.from)
      .where('position', '<', p.below)
      .where(isOrphan),
);
