import type { SecretKey } from '../../identity/secret-keys.ts';
import {
  deleteFormerSecrets,
  formerSecretOlder,
  formerToReencrypt,
  keepFormerSecret,
  reencryptFormer,
} from '../../store/queries/former-secrets.ts';
import { oldestSent } from '../../store/queries/operations.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Context, seconds } from '../shared/context.ts';
import { openValue, sealValue } from './secret-seal.ts';

/**
 * Earlier values of secrets, encrypted. They go to no machine any more; one that has them may still say them in what it
 * reports of an operation that is open, and there they must be known to be taken out.
 */

/** For the unit that changes or removes a secret, before it does. */
export const keepFormer = ({ now }: Pick<Context, 'now'>, name: string): Statement =>
  statement(keepFormerSecret, { name, now: seconds(now()) });

/** Deletes the values that were replaced before any operation was sent that is still open. */
export async function dropFormerSecrets({ db, now }: Context): Promise<void> {
  // What is sent from here on has a later time than that, whatever it is sent with.
  const present = seconds(now());
  if (!(await db.get(formerSecretOlder, { before: present }))) return;
  const before = Math.min(present, (await db.get(oldestSent, {}))?.dispatched_at ?? present);
  if (!(await db.get(formerSecretOlder, { before }))) return;
  await db.write({ name: 'former secrets/drop', statements: [statement(deleteFormerSecrets, { before })] });
}

const atOnce = 200;

/** Puts every value that can be read under a key: part of changing that key. One that cannot tells nobody anything. */
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
      const anew = sealValue(active, { name, version }, value, randomBytes(12));
      return [statement(reencryptFormer, { name, version, key_id: active.id, sealed: anew })];
    });
    if (statements.length > 0) await db.write({ name: 'former secrets/reencrypt', statements });
    if (rows.length < atOnce) return;
    after = rows.at(-1) ?? after;
  }
}
