import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** Bytes before the 32-byte key in the DER encoding of an Ed25519 public key (RFC 8410). */
const spkiPrefixLength = 12;

export interface AgentKey {
  /** The raw 32-byte key. */
  publicKey: Buffer;
  /** The private key in PKCS#8. */
  pem: string;
  sign(bytes: Uint8Array): Buffer;
}

export const newKeyPem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;

/**
 * Reads a private key.
 * @param path key file, for the error message
 * @throws Error if the key is not an Ed25519 key
 */
export function keyOfPem(pem: string, path: string): AgentKey {
  const privateKey = createPrivateKey(pem);
  const publicKey = rawEd25519Key(createPublicKey(privateKey));
  if (publicKey === null) throw new Error(`${path} does not contain an Ed25519 key; restore the original file`);
  return { publicKey, pem, sign: (bytes) => sign(null, bytes, privateKey) };
}

export const hexOf = ({ publicKey }: Pick<AgentKey, 'publicKey'>): string => publicKey.toString('hex');

/** Returns the 32 bytes of an Ed25519 public key; null if the key has another type. */
export function rawEd25519Key(key: KeyObject): Buffer | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  return key.export({ format: 'der', type: 'spki' }).subarray(spkiPrefixLength);
}
