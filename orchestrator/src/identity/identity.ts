import { createPrivateKey, generateKeyPairSync, hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { ensurePrivateDirectory, readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { selfSigned } from './certificate.ts';
import { rawPublicKey } from './ed25519-key.ts';

/** The key and certificate that the orchestrator presents to agents. */
export interface Identity {
  /** The orchestrator key, which agents pin; 32 bytes. */
  publicKey: Buffer;
  /** Private key, PKCS#8 in PEM. */
  privateKeyPem: string;
  /** Self-signed certificate for this key. Agents check only the key. */
  certificatePem: string;
}

/**
 * Loads the identity from a data directory, or creates it.
 * @throws LoosePermissionsError if other users can access the directory or the key
 */
export async function loadIdentity(dataDir: string): Promise<Identity> {
  ensurePrivateDirectory(dataDir);
  const path = join(dataDir, 'identity.key');
  let pem = readPrivateFile(path);
  if (pem === null) {
    pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    writePrivateFile(path, pem, 'keep');
  }
  const privateKey = createPrivateKey(pem);
  const publicKey = rawPublicKey(privateKey);
  if (publicKey === null) throw new Error(`${path} does not contain an Ed25519 key; restore the original file`);
  // Agents verify only the key, not names or dates, so each startup can create a new certificate with a long lifetime.
  const certificatePem = await selfSigned(privateKey, { commonName: 'muster orchestrator', hosts: [], days: 36_500 });
  return { publicKey, privateKeyPem: pem, certificatePem };
}

/** Returns the 32-byte key for sign-in challenges, which is the same in all processes with this identity. */
export const challengeKey = (identity: Identity): Buffer => derivedKey(identity, 'muster sign-in challenges v1');

/** Returns the 32 secret bytes that protect messages between processes with this identity. */
export const busSecret = (identity: Identity): Buffer => derivedKey(identity, 'muster bus v1');

/** Returns the 32-byte key for digests of the configuration, which is the same in all processes with this identity. */
export const configDigestKey = (identity: Identity): Buffer => derivedKey(identity, 'muster config digests v1');

function derivedKey({ privateKeyPem }: Identity, purpose: string): Buffer {
  const secret = createPrivateKey(privateKeyPem).export({ format: 'der', type: 'pkcs8' });
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));
}
