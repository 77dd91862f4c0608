import { defineQuery, defineVariants } from '../query.ts';
import type { MaintenanceWindowsTable } from '../schema.ts';

export const windowById = defineQuery('windows/by id', (db, p: { id: string }) =>
  db.selectFrom('maintenance_windows').selectAll().where('id', '=', p.id),
);

/** Maintenance windows, latest start first. */
export const windows = defineQuery('windows/list', (db, p: { limit: number; offset: number }) =>
  db
    .selectFrom('maintenance_windows')
    .selectAll()
    .orderBy('starts_at', 'desc')
    .orderBy('id', 'desc')
    .limit(p.limit)
    .offset(p.offset),
);

/** Selectors of the maintenance windows that are open at a time. */
export const openSelectors = defineQuery('windows/open', (db, p: { at: number }) =>
  db
    .selectFrom('maintenance_windows')
    .select(['id', 'selector', 'ends_at'])
    .where('ends_at', '>', p.at)
    .where('starts_at', '<=', p.at),
);

export const insertWindow = defineQuery('windows/insert', (db, p: MaintenanceWindowsTable) =>
  db.insertInto('maintenance_windows').values({
    id: p.id,
    starts_at: p.starts_at,
    ends_at: p.ends_at,
    reason: p.reason,
    selector: p.selector,
    created_at: p.created_at,
    created_by: p.created_by,
  }),
);

export const setWindow = defineVariants(
  'windows/set',
  (db, p: { id: string; ends_at: number; reason: string }, _d, v: { ends_at: boolean; reason: boolean }) =>
    db
      .updateTable('maintenance_windows')
      .set({ ...(v.ends_at ? { ends_at: p.ends_at } : {}), ...(v.reason ? { reason: p.reason } : {}) })
      .where('id', '=', p.id),
);

export const deleteWindow = defineQuery('windows/delete', (db, p: { id: string }) =>
  db.deleteFrom('maintenance_windows').where('id', '=', p.id),
);
