import { createPublicKey, hash, type KeyObject } from 'node:crypto';

export { isUsablePublicKey } from '@muster/protocol';

/** DER of an Ed25519 SubjectPublicKeyInfo up to the 32 bytes of the key. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex');

/** @param raw 32 bytes that passed `isUsablePublicKey` */
export function publicKeyFromRaw(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([spkiPrefix, raw]), format: 'der', type: 'spki' });
}

/** The 32 bytes of an Ed25519 public key (also of a private key's), or null for any other kind of key. */
export function rawPublicKey(key: KeyObject): Buffer | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(spkiPrefix.length);
}

/**
 * Synchronous version of the protocol's `idOfKey`: passing a block to a thread and back costs half a millisecond of the
 * event loop for each of thousands of agents that reconnect together.
 */
export function idOfRawKey(raw: Uint8Array): string {
  return hash('sha256', raw, 'hex').slice(0, 32);
}
