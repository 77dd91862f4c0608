import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { ensurePrivateDirectory, readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { selfSigned } from './certificate.ts';
import { rawPublicKey } from './ed25519-key.ts';

/** The identity that this orchestrator presents to its agents. */
export interface Identity {
  /** 32 bytes; agents pin it. */
  publicKey: Buffer;
  /** PKCS#8 in PEM, for the TLS server. */
  privateKeyPem: string;
  /** Self-signed with the same key; agents check only its key. */
  certificatePem: string;
}

/**
 * The identity of this data directory, created by the first call.
 * @throws LoosePermissionsError when other users can access the directory or the key
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
  // Agents ignore names and dates, so each start creates a new certificate with a long lifetime.
  const certificatePem = await selfSigned(privateKey, { commonName: 'muster orchestrator', hosts: [], days: 36_500 });
  return { publicKey, privateKeyPem: pem, certificatePem };
}
