import type { JsonText } from '../json-text.ts';
import { defineQuery } from '../query.ts';
import type { ModuleRevisionsTable } from '../schema.ts';

export const modules = defineQuery('modules/list', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('modules').selectAll().orderBy('name').limit(p.limit).offset(p.offset),
);

export const moduleByName = defineQuery('modules/by name', (db, p: { name: string }) =>
  db.selectFrom('modules').selectAll().where('name', '=', p.name),
);

export const modulesByName = defineQuery('modules/by names', (db, p: { names: readonly string[] }, d) =>
  db.selectFrom('modules').select(['name', 'revision', 'requires']).where(d.isIn('name', p.names)),
);

/** Modules whose newest revision requires the given module. */
export const modulesRequiring = defineQuery('modules/requiring', (db, p: { module: string }, d) =>
  db.selectFrom('modules').select('name').where(d.jsonArrayHas('requires', p.module)).orderBy('name').limit(20),
);

/** For preconditions: returns a row if this is still the newest revision of the module. */
export const moduleAtRevision = defineQuery('modules/at revision', (db, p: { name: string; revision: number }) =>
  db.selectFrom('modules').select('name').where('name', '=', p.name).where('revision', '=', p.revision),
);

export const moduleRevision = defineQuery('modules/revision', (db, p: { name: string; revision: number }) =>
  db.selectFrom('module_revisions').selectAll().where('name', '=', p.name).where('revision', '=', p.revision),
);

export const moduleRevisions = defineQuery(
  'modules/revisions',
  (db, p: { name: string; limit: number; offset: number }) =>
    db
      .selectFrom('module_revisions')
      .select(['revision', 'digest', 'uploaded_at', 'uploaded_by'])
      .where('name', '=', p.name)
      .orderBy('revision', 'desc')
      .limit(p.limit)
      .offset(p.offset),
);

/**
 * Creates the module, or updates its revision number. Changes nothing if the module has this revision or a newer
 * revision.
 */
export const putModule = defineQuery(
  'modules/put',
  (db, p: { name: string; revision: number; uploaded_at: number; uploaded_by: string; requires: JsonText<string[]> }) =>
    db
      .insertInto('modules')
      .values({
        name: p.name,
        revision: p.revision,
        uploaded_at: p.uploaded_at,
        uploaded_by: p.uploaded_by,
        requires: p.requires,
      })
      .onConflict((c) =>
        c
          .column('name')
          .doUpdateSet({
            revision: (e) => e.ref('excluded.revision'),
            uploaded_at: (e) => e.ref('excluded.uploaded_at'),
            uploaded_by: (e) => e.ref('excluded.uploaded_by'),
            requires: (e) => e.ref('excluded.requires'),
          })
          .whereRef('excluded.revision', '>', 'modules.revision'),
      ),
);

/** The last revision of a module with this name, even if the module was removed. */
export const lastRevision = defineQuery('modules/last revision', (db, p: { name: string }) =>
  db.selectFrom('module_revisions').select('revision').where('name', '=', p.name).orderBy('revision', 'desc').limit(1),
);

export const insertModuleRevision = defineQuery('modules/insert revision', (db, p: ModuleRevisionsTable) =>
  db.insertInto('module_revisions').values({
    name: p.name,
    revision: p.revision,
    content: p.content,
    digest: p.digest,
    uploaded_at: p.uploaded_at,
    uploaded_by: p.uploaded_by,
  }),
);

export const deleteModule = defineQuery('modules/delete', (db, p: { name: string }) =>
  db.deleteFrom('modules').where('name', '=', p.name),
);
