import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { ensurePrivateDirectory, readPrivateFile, writePrivateFile } from '../../../lib/src/private-file.ts';
import { selfSigned } from './certificate.ts';

/** Lifetime in days. Some clients refuse certificates with a longer lifetime, even if they trust the issuer. */
const lifeDays = 825;
const renewalDays = 30;

export interface ApiCertificate {
  /** Private key, PKCS#8 in PEM. */
  key: string;
  /** The certificate in PEM. */
  certificate: string;
  /** SHA-256 of the certificate in uppercase hex with colons, as browsers show it. */
  fingerprint: string;
}

/**
 * Loads the generated certificate for the API port, or creates it. The certificate is valid for 127.0.0.1, localhost,
 * and the advertised host, and has a P-256 key, because browsers refuse Ed25519. It is stored in the data directory, so
 * that clients need to trust it only once, and is renewed with the same key if a host is missing, and 30 days before it
 * expires.
 * @param advertisedHost name or IP address at which operators reach the API; null for none
 * @throws LoosePermissionsError if other users can access the directory or a file
 */
export async function loadApiCertificate(
  dataDir: string,
  advertisedHost: string | null,
  now = Date.now(),
): Promise<ApiCertificate> {
  ensurePrivateDirectory(dataDir);
  const keyPath = join(dataDir, 'api.key');
  const certificatePath = join(dataDir, 'api.crt');
  let key = readPrivateFile(keyPath);
  if (key === null) {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    key = pair.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
    writePrivateFile(keyPath, key, 'keep');
  }
  const hosts = [...new Set(['localhost', '127.0.0.1', ...(advertisedHost === null ? [] : [advertisedHost])])];
  let certificate = readPrivateFile(certificatePath);
  if (certificate === null || !isGood(new X509Certificate(certificate), key, hosts, now)) {
    certificate = await selfSigned(createPrivateKey(key), { commonName: 'muster api', hosts, days: lifeDays });
    await rm(certificatePath, { force: true });
    writePrivateFile(certificatePath, certificate, 'keep');
  }
  return { key, certificate, fingerprint: new X509Certificate(certificate).fingerprint256 };
}

function isGood(certificate: X509Certificate, key: string, hosts: readonly string[], now: number): boolean {
  return (
    certificate.checkPrivateKey(createPrivateKey(key)) &&
    certificate.validToDate.getTime() - now > renewalDays * 86_400_000 &&
    hosts.every((host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined)
  );
}
