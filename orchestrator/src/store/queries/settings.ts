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

/** For preconditions: returns a row if a setting has this value. */
export const settingWithValue = defineQuery('settings/with value', (db, p: { key: string; value: string }) =>
  db.selectFrom('settings').select('key').where('key', '=', p.key).where('value', '=', p.value),
);

export const deleteSetting = defineQuery('settings/delete', (db, p: { key: string }) =>
  db.deleteFrom('settings').where('key', '=', p.key),
);
