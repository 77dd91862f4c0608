import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** Length of what stands before the 32 bytes in the DER of an Ed25519 public key. */
const spkiPrefixLength = 12;

export interface AgentKey {
  /** 32 bytes. */
  publicKey: Buffer;
  /** PKCS#8. */
  pem: string;
  sign(bytes: Uint8Array): Buffer;
}

export const newKeyPem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;

/** @throws Error when it is no such key; `path` is where it was found */
export function keyOfPem(pem: string, path: string): AgentKey {
  const privateKey = createPrivateKey(pem);
  const publicKey = rawEd25519Key(createPublicKey(privateKey));
  if (publicKey === null) throw new Error(`${path} does not hold an Ed25519 key; put back the file that was there`);
  return { publicKey, pem, sign: (bytes) => sign(null, bytes, privateKey) };
}

export const hexOf = ({ publicKey }: Pick<AgentKey, 'publicKey'>): string => publicKey.toString('hex');

/** The 32 bytes of an Ed25519 public key, null for a key of any other kind. */
export function rawEd25519Key(key: KeyObject): Buffer | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  return key.export({ format: 'der', type: 'spki' }).subarray(spkiPrefixLength);
}
