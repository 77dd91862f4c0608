import { defineQuery } from '../query.ts';

export const putSetting = defineQuery('settings/put', (db, p: { key: string; value: string }) =>
  db
    .insertInto('settings')
    .values({ key: p.key, value: p.value })
    .onConflict((c) => c.column('key').doUpdateSet({ value: (e) => e.ref('excluded.value') })),
);

export const setting = defineQuery('settings/get', (db, p: { key: string }) =>
  db.selectFrom('settings').select('value').where('key', '=', p.key),
);

export const deleteSetting = defineQuery('settings/delete', (db, p: { key: string }) =>
  db.deleteFrom('settings').where('key', '=', p.key),
);
