import { defineQuery } from '../query.ts';

/** Encrypted previous values of secrets. */

/**
 * Stores a secret's current value as a previous value. Must precede the statement that changes or removes the secret.
 */
export const keepFormerSecret = defineQuery('former secrets/keep', (db, p: { name: string; now: number }, d) =>
  db
    .insertInto('former_secrets')
    .columns(['name', 'version', 'key_id', 'sealed', 'replaced_at'])
    .expression((from) =>
      from
        .selectFrom('secrets')
        .select(['name', 'version', 'key_id', 'sealed', d.typed(p.now, 'integer').as('replaced_at')])
        .where('name', '=', p.name),
    )
    .onConflict((c) => c.columns(['name', 'version']).doNothing()),
);

export const formerSecretsNamed = defineQuery('former secrets/named', (db, p: { names: string[] }, d) =>
  db.selectFrom('former_secrets').select(['name', 'version', 'key_id', 'sealed']).where(d.isIn('name', p.names)),
);

/** Returns a row if any previous value was replaced before a time. */
export const formerSecretOlder = defineQuery('former secrets/older', (db, p: { before: number }) =>
  db.selectFrom('former_secrets').select('name').where('replaced_at', '<', p.before).limit(1),
);

export const deleteFormerSecrets = defineQuery('former secrets/delete', (db, p: { before: number }) =>
  db.deleteFrom('former_secrets').where('replaced_at', '<', p.before),
);

/** Previous values that are encrypted with another key. */
export const formerToReencrypt = defineQuery(
  'former secrets/to reencrypt',
  (db, p: { key_id: string; after_name: string; after_version: number; limit: number }) =>
    db
      .selectFrom('former_secrets')
      .select(['name', 'version', 'key_id', 'sealed'])
      .where('key_id', '!=', p.key_id)
      .where((w) =>
        w.or([w('name', '>', p.after_name), w.and([w('name', '=', p.after_name), w('version', '>', p.after_version)])]),
      )
      .orderBy('name')
      .orderBy('version')
      .limit(p.limit),
);

export const reencryptFormer = defineQuery(
  'former secrets/reencrypt',
  (db, p: { name: string; version: number; key_id: string; sealed: string }) =>
    db
      .updateTable('former_secrets')
      .set({ key_id: p.key_id, sealed: p.sealed })
      .where('name', '=', p.name)
      .where('version', '=', p.version),
);

/** Returns a row if any previous value is encrypted with this key. */
export const formerUnderKey = defineQuery('former secrets/under key', (db, p: { key_id: string }) =>
  db.selectFrom('former_secrets').select('name').where('key_id', '=', p.key_id).limit(1),
);
