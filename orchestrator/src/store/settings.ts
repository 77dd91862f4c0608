import { defineQuery } from './query.ts';

export const putSetting = defineQuery('settings/put', (db, p: { key: string; value: string }) =>
  db
    .insertInto('settings')
    .values({ key: p.key, value: p.value })
    .onConflict((c) => c.column('key').doUpdateSet({ value: (e) => e.ref('excluded.value') })),
);
