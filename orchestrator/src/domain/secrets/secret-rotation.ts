import { MusterError } from '@muster/protocol';
import { channelUnderKey, channelUnderOther } from '../../store/queries/channels.ts';
import { formerUnderKey } from '../../store/queries/former-secrets.ts';
import { reencryptSecret, secretsToReencrypt, secretUnderKey, secretUnderOther } from '../../store/queries/secrets.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import type { Actor, Context } from '../shared/context.ts';
import { resealChannels } from './channel-seal.ts';
import { resealFormerSecrets } from './former-secrets.ts';
import { openValue, sealValue } from './secret-seal.ts';

/** Changing the key that secrets are encrypted under. */

/** Encrypted again in one unit. */
const atOnce = 200;

export interface Rotation {
  key_id: string;
  /** Secrets, and configs of channels. */
  reencrypted: number;
  retired: string[];
  /** Names of secrets; a channel is `channel NAME`. */
  unreadable: string[];
}

const running = new WeakMap<object, Promise<unknown>>();

/**
 * Puts every value, and every config of a channel, under one key: a new one where the keys are in a file of ours, else
 * the first of those given. The key is on disk before a value is under it, and no key goes before its last value: killed anywhere, all values can be read,
 * and the next call finishes what this one began. One at a time.
 * @throws MusterError secrets_locked when there is no key at all
 */
export async function rotateSecretsKey(context: Context, actor: Actor): Promise<Rotation> {
  const before = running.get(context.secretKeys) ?? Promise.resolve();
  const mine = before.then(async () => rotate(context, await stillSignedIn(context, actor)));
  running.set(
    context.secretKeys,
    mine.catch(() => {}),
  );
  return mine;
}

async function rotate(context: Context, actor: Actor): Promise<Rotation> {
  const { db, secretKeys } = context;
  if (secretKeys.active === null) throw new MusterError('secrets_locked');
  // More than one key in our own file: a rotation did not come to its end, and this one brings it there.
  if (secretKeys.canAdd && !secretKeys.rotationCutOff) await secretKeys.add();
  // What began under another key is written before it is looked for.
  await secretKeys.settled();
  const { active } = secretKeys;
  const unreadable: string[] = [];
  let reencrypted = 0;
  for (let after = ''; ; ) {
    const rows = await db.all(secretsToReencrypt, { key_id: active.id, after, limit: atOnce });
    const statements = rows.flatMap(({ name, version, key_id, sealed }) => {
      const key = secretKeys.find(key_id);
      const value = key === null ? null : openValue(key, { name, version }, sealed);
      if (value === null) {
        unreadable.push(name);
        return [];
      }
      const anew = sealValue(active, { name, version }, value, context.randomBytes(12));
      return [statement(reencryptSecret, { name, version, old_key_id: key_id, key_id: active.id, sealed: anew })];
    });
    if (statements.length > 0) {
      const done = await db.write({ name: 'secrets/reencrypt', statements });
      reencrypted += done.results.filter(({ changes }) => changes > 0).length;
    }
    if (rows.length < atOnce) break;
    after = rows.at(-1)?.name ?? after;
  }
  const channels = await resealChannels(context, active);
  reencrypted += channels.resealed;
  unreadable.push(...channels.unreadable.map((name) => `channel ${name}`));
  // After secrets: what was replaced while they were encrypted anew is here, under the former key.
  await resealFormerSecrets(context, active);
  const inUse = async (key_id: string) =>
    (await db.get(secretUnderKey, { key_id })) ??
    (await db.get(channelUnderKey, { key_id })) ??
    (await db.get(formerUnderKey, { key_id }));
  const retired: string[] = [];
  for (const id of secretKeys.ids) if (id !== active.id && !(await inUse(id))) retired.push(id);
  await db.write({
    name: 'secrets/key rotated',
    statements: [
      audited(context, {
        type: 'secret.key_rotated',
        severity: unreadable.length > 0 ? 'warning' : 'info',
        actor,
        summary: `${reencrypted} secrets and configs of channels were encrypted anew, under key ${active.id}`,
        metadata: { key_id: active.id, reencrypted, retired, unreadable: unreadable.length },
      }),
    ],
  });
  await secretKeys.retire(retired);
  return { key_id: active.id, reencrypted, retired, unreadable };
}

/** @returns the id of a key that a secret or a channel needs and that is not there; null when all are */
export async function missingKey({ db, secretKeys }: Pick<Context, 'db' | 'secretKeys'>): Promise<string | null> {
  const known = { key_ids: secretKeys.ids };
  return ((await db.get(secretUnderOther, known)) ?? (await db.get(channelUnderOther, known)))?.key_id ?? null;
}
