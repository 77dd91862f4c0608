import { createPublicKey, hash, type KeyObject } from 'node:crypto';

export { isUsablePublicKey } from '@muster/protocol';

/** DER encoding of an Ed25519 SubjectPublicKeyInfo (RFC 8410), without the final 32 bytes, which are the key. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** @param raw 32 bytes that `isUsablePublicKey` accepts */
export function publicKeyFromRaw(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' });
}

/**
 * Returns the 32 bytes of an Ed25519 public key, or of the public key that belongs to a private key; null for other
 * kinds of keys.
 */
export function rawPublicKey(key: KeyObject): Buffer | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(spkiPrefix.length);
}

/**
 * Returns the same ID as `idOfKey`, but synchronously. When thousands of agents reconnect at the same time,
 * asynchronous hashing would take an additional 0.5 ms of event-loop time for each.
 */
export function idOfRawKey(raw: Uint8Array): string {
  return hash('sha256', raw, 'hex').slice(0, 32);
}
