import type { SecretKey } from '../../identity/secret-keys.ts';
import {
  deleteFormerSecrets,
  formerSecretOlder,
  formerToReencrypt,
  keepFormerSecret,
  reencryptFormer,
} from '../../store/queries/former-secrets.ts';
import { oldestSent } from '../../store/queries/operations/operation-end.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Context, seconds } from '../shared/context.ts';
import { openValue, sealValue } from './secret-seal.ts';

/**
 * Stores previous secret values, encrypted. Machines that still have these values may include them in reports on open
 * operations, from which they must be removed.
 */

/**
 * Returns the statement that stores the previous value. Must precede the change in the transaction that changes or
 * removes a secret.
 */
export const keepFormer = ({ now }: Pick<Context, 'now'>, name: string): Statement =>
  statement(keepFormerSecret, { name, now: seconds(now()) });

/** Deletes previous values that were replaced before the oldest open operation was dispatched. */
export async function dropFormerSecrets({ db, now }: Context): Promise<void> {
  // Reads the clock before the query, so that operations dispatched after the query have a later time.
  const present = seconds(now());
  if (!(await db.get(formerSecretOlder, { before: present }))) return;
  const before = Math.min(present, (await db.get(oldestSent, {}))?.dispatched_at ?? present);
  if (!(await db.get(formerSecretOlder, { before }))) return;
  await db.write({ name: 'former secrets/drop', statements: [statement(deleteFormerSecrets, { before })] });
}

const atOnce = 200;

/**
 * Encrypts all readable previous values with a single key, as part of a key rotation. Skips unreadable values, which
 * cannot be removed from reports anyway.
 */
export async function resealFormerSecrets(
  { db, secretKeys, randomBytes }: Pick<Context, 'db' | 'secretKeys' | 'randomBytes'>,
  active: SecretKey,
): Promise<void> {
  for (let after = { name: '', version: 0 }; ; ) {
    const page = { key_id: active.id, after_name: after.name, after_version: after.version, limit: atOnce };
    const rows = await db.all(formerToReencrypt, page);
    const statements = rows.flatMap(({ name, version, key_id, sealed }) => {
      const key = secretKeys.find(key_id);
      const value = key === null ? null : openValue(key, { name, version }, sealed);
      if (value === null) return [];
      const resealed = sealValue(active, { name, version }, value, randomBytes(12));
      return [statement(reencryptFormer, { name, version, key_id: active.id, sealed: resealed })];
    });
    if (statements.length > 0) await db.write({ name: 'former secrets/reencrypt', statements });
    if (rows.length < atOnce) return;
    after = rows.at(-1) ?? after;
  }
}
