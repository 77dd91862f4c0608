import 'reflect-metadata';
import { createPublicKey, type KeyObject, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

/**
 * Creates a self-signed certificate.
 * @param privateKey Ed25519 or P-256
 * @param subject `hosts`: names and IP addresses; `days`: lifetime, starting yesterday to tolerate clock skew
 * @returns the certificate in PEM
 */
export async function selfSigned(
  privateKey: KeyObject,
  subject: { commonName: string; hosts: readonly string[]; days: number },
): Promise<string> {
  const isEd25519 = privateKey.asymmetricKeyType === 'ed25519';
  const algorithm = isEd25519 ? { name: 'Ed25519' } : { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const keys = {
    privateKey: await webcrypto.subtle.importKey('pkcs8', pkcs8, algorithm, true, ['sign']),
    publicKey: await webcrypto.subtle.importKey('spki', spki, algorithm, true, ['verify']),
  };
  const notBefore = new Date(Date.now() - 86_400_000);
  const extensions: x509.Extension[] = [new x509.BasicConstraintsExtension(false, undefined, true)];
  if (subject.hosts.length > 0) {
    const names = subject.hosts.map((host) => ({
      type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const),
      value: host,
    }));
    extensions.push(
      new x509.SubjectAlternativeNameExtension(names),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    );
  }
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // A leading zero bit keeps the serial number positive.
    serialNumber: `01${randomBytes(15).toString('hex')}`,
    name: [{ CN: [subject.commonName] }],
    notBefore,
    notAfter: new Date(notBefore.getTime() + subject.days * 86_400_000),
    signingAlgorithm: algorithm,
    keys,
    extensions,
  });
  return certificate.toString('pem');
}
