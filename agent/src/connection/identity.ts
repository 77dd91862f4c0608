import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { ensurePrivateDirectory, readPrivateFile, writePrivateFile } from '../host/private-file.ts';

/** Length of what stands before the 32 bytes in the DER of an Ed25519 public key. */
const spkiPrefixLength = 12;

export interface AgentIdentity {
  nodeId: string;
  /** 32 bytes. */
  publicKey: Buffer;
  sign(bytes: Uint8Array): Buffer;
}

/**
 * The identity of this data directory, made at the first call.
 * @throws LoosePermissionsError when the directory or the key is open to others
 */
export async function loadAgentIdentity(dataDir: string): Promise<AgentIdentity> {
  ensurePrivateDirectory(dataDir);
  const path = join(dataDir, 'agent.key');
  let pem = readPrivateFile(path);
  if (pem === null) {
    pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    writePrivateFile(path, pem, 'keep');
  }
  const privateKey = createPrivateKey(pem);
  const publicKey = rawEd25519Key(createPublicKey(privateKey));
  if (publicKey === null) throw new Error(`${path} does not hold an Ed25519 key; put back the file that was there`);
  return { nodeId: await idOfKey(publicKey), publicKey, sign: (bytes) => sign(null, bytes, privateKey) };
}

/** The 32 bytes of an Ed25519 public key, null for a key of any other kind. */
export function rawEd25519Key(key: KeyObject): Buffer | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  return key.export({ format: 'der', type: 'spki' }).subarray(spkiPrefixLength);
}
