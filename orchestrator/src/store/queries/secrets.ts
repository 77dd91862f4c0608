import type { JsonText } from '../json-text.ts';
import { defineQuery, defineVariants } from '../query.ts';
import type { SecretRestrictionRow } from '../schema.ts';

/** All columns except the value. */
const entry = [
  'name',
  'version',
  'key_id',
  'description',
  'expires_at_ms',
  'restriction',
  'created_at_ms',
  'created_by',
  'updated_at_ms',
  'updated_by',
] as const;

export const secretByName = defineQuery('secrets/by name', (db, p: { name: string }) =>
  db.selectFrom('secrets').select(entry).where('name', '=', p.name),
);

export const secretPage = defineQuery('secrets/list', (db, p: { limit: number; offset: number }) =>
  db.selectFrom('secrets').select(entry).orderBy('name').limit(p.limit).offset(p.offset),
);

/** The restrictions and expiry of the given secrets. */
export const secretTerms = defineQuery('secrets/terms', (db, p: { names: string[] }, d) =>
  db
    .selectFrom('secrets')
    .select(['name', 'version', 'key_id', 'expires_at_ms', 'restriction'])
    .where(d.isIn('name', p.names)),
);

/** Restrictions, expiry, and encrypted values of the given secrets. */
export const sealedSecrets = defineQuery('secrets/sealed', (db, p: { names: string[] }, d) =>
  db
    .selectFrom('secrets')
    .select(['name', 'version', 'key_id', 'sealed', 'expires_at_ms', 'restriction'])
    .where(d.isIn('name', p.names)),
);

export const secretVersion = defineQuery('secrets/last version', (db, p: { name: string }) =>
  db.selectFrom('secret_versions').select('version').where('name', '=', p.name),
);

/** Reserves the next version of a name. Changes nothing if another write has already reserved this version. */
export const takeSecretVersion = defineQuery('secrets/take version', (db, p: { name: string; version: number }) =>
  db
    .insertInto('secret_versions')
    .values({ name: p.name, version: p.version })
    .onConflict((c) =>
      c
        .column('name')
        .doUpdateSet({ version: (e) => e.ref('excluded.version') })
        .whereRef('secret_versions.version', '=', (e) => e('excluded.version', '-', e.lit(1))),
    ),
);

export const insertSecret = defineQuery(
  'secrets/insert',
  (
    db,
    p: {
      name: string;
      version: number;
      key_id: string;
      sealed: string;
      description: string | null;
      expires_at_ms: number | null;
      restriction: JsonText<SecretRestrictionRow> | null;
      now_ms: number;
      by: string;
    },
  ) =>
    db.insertInto('secrets').values({
      name: p.name,
      version: p.version,
      key_id: p.key_id,
      sealed: p.sealed,
      description: p.description,
      expires_at_ms: p.expires_at_ms,
      untold_expiry_ms: p.expires_at_ms,
      restriction: p.restriction,
      created_at_ms: p.now_ms,
      created_by: p.by,
      updated_at_ms: p.now_ms,
      updated_by: p.by,
    }),
);

/** Sets only the fields of the variant, so that concurrent changes to different fields do not overwrite each other. */
export const updateSecret = defineVariants(
  'secrets/update',
  (
    db,
    p: {
      name: string;
      now_ms: number;
      by: string;
      version: number;
      key_id: string;
      sealed: string;
      description: string | null;
      expires_at_ms: number | null;
      restriction: JsonText<SecretRestrictionRow> | null;
    },
    _d,
    v: { value: boolean; description: boolean; expiry: boolean; restriction: boolean },
  ) =>
    db
      .updateTable('secrets')
      .set({
        updated_at_ms: p.now_ms,
        updated_by: p.by,
        ...(v.value ? { version: p.version, key_id: p.key_id, sealed: p.sealed } : {}),
        ...(v.description ? { description: p.description } : {}),
        ...(v.expiry ? { expires_at_ms: p.expires_at_ms, untold_expiry_ms: p.expires_at_ms } : {}),
        ...(v.restriction ? { restriction: p.restriction } : {}),
      })
      .where('name', '=', p.name),
);

export const deleteSecret = defineQuery('secrets/delete', (db, p: { name: string }) =>
  db.deleteFrom('secrets').where('name', '=', p.name),
);

export const anySecret = defineQuery('secrets/any', (db) => db.selectFrom('secrets').select('name').limit(1));

/** A secret that is not encrypted with any of the given keys. */
export const secretUnderOther = defineQuery('secrets/under other key', (db, p: { key_ids: string[] }, d) =>
  db.selectFrom('secrets').select(['name', 'key_id']).where(d.isNotIn('key_id', p.key_ids)).limit(1),
);

/** Secrets that are encrypted with another key, by name. */
export const secretsToReencrypt = defineQuery(
  'secrets/to reencrypt',
  (db, p: { key_id: string; after: string; limit: number }) =>
    db
      .selectFrom('secrets')
      .select(['name', 'version', 'key_id', 'sealed'])
      .where('name', '>', p.after)
      .where('key_id', '!=', p.key_id)
      .orderBy('name')
      .limit(p.limit),
);

/**
 * Replaces the value with the same value, encrypted with another key. Changes nothing if the secret has changed since
 * it was read.
 */
export const reencryptSecret = defineQuery(
  'secrets/reencrypt',
  (db, p: { name: string; version: number; old_key_id: string; key_id: string; sealed: string }) =>
    db
      .updateTable('secrets')
      .set({ key_id: p.key_id, sealed: p.sealed })
      .where('name', '=', p.name)
      .where('version', '=', p.version)
      .where('key_id', '=', p.old_key_id),
);

/** Returns a row if any secret is encrypted with this key. */
export const secretUnderKey = defineQuery('secrets/under key', (db, p: { key_id: string }) =>
  db.selectFrom('secrets').select('name').where('key_id', '=', p.key_id).limit(1),
);

/** Secrets that expire before a time and whose expiry event is not recorded yet. */
export const expiringSecrets = defineQuery('secrets/expiring', (db, p: { before_ms: number; limit: number }) =>
  db
    .selectFrom('secrets')
    .select(['name', 'untold_expiry_ms'])
    .where('untold_expiry_ms', '<=', p.before_ms)
    .orderBy('untold_expiry_ms')
    .limit(p.limit),
);

/** Secrets that expire before a time or have already expired, earliest first. */
export const secretsByExpiry = defineQuery('secrets/by expiry', (db, p: { before_ms: number; limit: number }) =>
  db
    .selectFrom('secrets')
    .select(['name', 'expires_at_ms'])
    .where('expires_at_ms', '<=', p.before_ms)
    .orderBy('expires_at_ms')
    .orderBy('name')
    .limit(p.limit),
);

export const markExpiryReported = defineQuery('secrets/expiry told', (db, p: { name: string; expiry_ms: number }) =>
  db
    .updateTable('secrets')
    .set({ untold_expiry_ms: null })
    .where('name', '=', p.name)
    .where('untold_expiry_ms', '=', p.expiry_ms),
);
