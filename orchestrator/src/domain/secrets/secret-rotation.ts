import { MusterError } from '@muster/protocol';
import { channelUnderKey, channelUnderOther } from '../../store/queries/channels.ts';
import { formerUnderKey } from '../../store/queries/former-secrets.ts';
import { reencryptSecret, secretsToReencrypt, secretUnderKey, secretUnderOther } from '../../store/queries/secrets.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import type { Actor, Context } from '../shared/context.ts';
import { createLease, fencedBy } from '../shared/leases.ts';
import { resealChannels } from './channel-seal.ts';
import { resealFormerSecrets } from './former-secrets.ts';
import { openValue, sealValue } from './secret-seal.ts';

/** Rotates the key that encrypts secrets. Only one process at a time does this, under a lease. */

/** Maximum number of secrets encrypted in one transaction. */
const atOnce = 200;

export interface Rotation {
  key_id: string;
  /** Number of re-encrypted secrets and channel configs. */
  reencrypted: number;
  retired: string[];
  /** Names of secrets that cannot be decrypted, and `channel NAME` for channels. */
  unreadable: string[];
}

const running = new WeakMap<object, Promise<unknown>>();

/**
 * Encrypts all secrets and channel configs with a single key: a new key if the orchestrator manages the key file,
 * otherwise the first configured key. A key is written to disk before it is used, and retired only after its last value
 * was re-encrypted. If the process is killed, all values remain readable, and the next call finishes the rotation.
 * Rotations run one at a time.
 * @throws MusterError secrets_key_shared in a replica; secrets_locked if there is no key; storage_unavailable if
 *   another process rotates the key, or has taken over
 */
export async function rotateSecretsKey(context: Context, actor: Actor): Promise<Rotation> {
  if (context.isReplica) throw new MusterError('secrets_key_shared');
  const before = running.get(context.secretKeys) ?? Promise.resolve();
  const mine = before.then(async () => rotateAlone(context, await stillSignedIn(context, actor)));
  running.set(
    context.secretKeys,
    mine.catch(() => {}),
  );
  return mine;
}

async function rotateAlone(context: Context, actor: Actor): Promise<Rotation> {
  const lease = createLease(context, 'secrets');
  const fence = await lease.hold();
  if (fence === null)
    throw new MusterError(
      'storage_unavailable',
      'another orchestrator process is rotating the secrets key; try again after it has finished',
    );
  try {
    return await rotate(fencedBy(context, fence), actor);
  } finally {
    // If the database is unavailable, the lease ends with this process, or with its next rotation.
    await lease
      .release()
      .catch((error: unknown) => context.log.warn({ err: error }, 'failed to release the secrets lease'));
  }
}

async function rotate(context: Context, actor: Actor): Promise<Rotation> {
  const { db, secretKeys } = context;
  if (secretKeys.active === null) throw new MusterError('secrets_locked');
  // If `secrets.keys` contains more than one key, a rotation was interrupted, and this call completes it.
  if (secretKeys.canAdd && !secretKeys.rotationCutOff) await secretKeys.add();
  // Waits for writes with the previous key, so that the following loop finds their values.
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
      const resealed = sealValue(active, { name, version }, value, context.randomBytes(12));
      return [statement(reencryptSecret, { name, version, old_key_id: key_id, key_id: active.id, sealed: resealed })];
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
  // Previous values come last, because values replaced during the rotation are stored under the previous key.
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
        summary: `${reencrypted} secrets and channel configs were re-encrypted with key ${active.id}`,
        metadata: { key_id: active.id, reencrypted, retired, unreadable: unreadable.length },
      }),
    ],
  });
  await secretKeys.retire(retired);
  return { key_id: active.id, reencrypted, retired, unreadable };
}

/** Returns the id of a missing key that a secret or channel needs; null if none is missing. */
export async function missingKey({ db, secretKeys }: Pick<Context, 'db' | 'secretKeys'>): Promise<string | null> {
  const known = { key_ids: secretKeys.ids };
  return ((await db.get(secretUnderOther, known)) ?? (await db.get(channelUnderOther, known)))?.key_id ?? null;
}
