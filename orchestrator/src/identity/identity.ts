import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { ensurePrivateDirectory, readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { selfSigned } from './certificate.ts';
import { rawPublicKey } from './ed25519-key.ts';

/** Who this orchestrator is to its agents. */
export interface Identity {
  /** 32 bytes: what agents pin. */
  publicKey: Buffer;
  /** PKCS#8 in PEM, for the TLS server. */
  privateKeyPem: string;
  /** Self-signed with the same key; agents look at nothing in it but the key. */
  certificatePem: string;
}

/**
 * The identity of this data directory, made at the first call.
 * @throws LoosePermissionsError when the directory or the key is open to others
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
  if (publicKey === null) throw new Error(`${path} does not hold an Ed25519 key; put back the file that was there`);
  // Agents ignore names and dates, so the certificate is made anew and its dates can be wide.
  const certificatePem = await selfSigned(privateKey, { commonName: 'muster orchestrator', hosts: [], days: 36_500 });
  return { publicKey, privateKeyPem: pem, certificatePem };
}
