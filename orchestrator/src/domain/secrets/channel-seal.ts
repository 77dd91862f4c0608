import { MusterError } from '@muster/protocol';
import type { SecretKey } from '../../identity/secret-keys.ts';
import { channelsToReseal, resealChannel } from '../../store/queries/channels.ts';
import { statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import { openValue, sealValue } from './secret-seal.ts';

/** Encrypts a channel's whole config with the secrets keys. */

export interface Sealed {
  readonly key_id: string;
  readonly sealed: string;
}

type Keeping = Pick<Context, 'secretKeys' | 'randomBytes'>;

/**
 * Returns the name and version under which a channel's config is sealed. No secret can have such a name, so a config
 * cannot be opened as a secret, or a secret as a config.
 */
const sealedFor = (channelId: string) => ({ name: `channel/${channelId}`, version: 1 });

function seal({ randomBytes }: Keeping, key: SecretKey, channelId: string, config: string): Sealed {
  return { key_id: key.id, sealed: sealValue(key, sealedFor(channelId), config, randomBytes(12)) };
}

/**
 * Seals a config and calls a function that writes it. The key is retained until the write has finished.
 * @throws MusterError secrets_locked if there is no key
 */
export function sealing<T>(
  context: Keeping,
  channelId: string,
  config: string,
  write: (sealed: Sealed) => Promise<T>,
): Promise<T> {
  return context.secretKeys.encrypting(async (key) => {
    if (key === null) throw new MusterError('secrets_locked');
    return write(seal(context, key, channelId, config));
  });
}

/**
 * Decrypts a config.
 * @returns null if the key is missing, or the config was not sealed for this channel
 */
export function opened({ secretKeys }: Keeping, row: Sealed & { channel_id: string }): string | null {
  const key = secretKeys.find(row.key_id);
  return key === null ? null : openValue(key, sealedFor(row.channel_id), row.sealed);
}

/**
 * Encrypts all readable configs with a single key, as part of a key rotation.
 * @returns the number of configs that were sealed with another key, and the names of channels with unreadable configs
 */
export async function resealChannels(
  context: Keeping & Pick<Context, 'db'>,
  key: SecretKey,
): Promise<{ resealed: number; unreadable: string[] }> {
  const unreadable: string[] = [];
  const statements = (await context.db.all(channelsToReseal, { key_id: key.id })).flatMap((row) => {
    const config = opened(context, row);
    if (config === null) {
      unreadable.push(row.name);
      return [];
    }
    const { channel_id, sealed: former } = row;
    return [statement(resealChannel, { channel_id, former, ...seal(context, key, channel_id, config) })];
  });
  if (statements.length === 0) return { resealed: 0, unreadable };
  const { results } = await context.db.write({ name: 'channels/reseal', statements });
  return { resealed: results.filter(({ changes }) => changes > 0).length, unreadable };
}
