import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** Creates certificates for tests, with real keys and signatures. */

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
x509.cryptoProvider.set(webcrypto as never);

export interface MadeCertificate {
  /** The certificate in PEM, with a line break at its end. */
  pem: string;
  /** Its private key in PEM (PKCS#8), with a line break at its end. */
  key: string;
  made: x509.X509Certificate;
  keys: Awaited<ReturnType<typeof webcrypto.subtle.generateKey>> & {
    privateKey: webcrypto.CryptoKey;
    publicKey: webcrypto.CryptoKey;
  };
}

export const dayMs = 24 * 60 * 60_000;

/**
 * Creates a certificate.
 * @param by the issuer's certificate; null for a self-signed certificate
 * @param names DNS names of the server; null for a certificate authority
 * @param days validity in days from now; negative for an expired certificate
 */
export async function madeCertificate(
  subject: string,
  by: MadeCertificate | null,
  names: readonly string[] | null,
  days = 90,
  now = Date.now(),
): Promise<MadeCertificate> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const made = await x509.X509CertificateGenerator.create({
    serialNumber: randomBytes(8).toString('hex'),
    subject: `CN=${subject}`,
    issuer: by === null ? `CN=${subject}` : by.made.subject,
    notBefore: new Date(now - 100 * dayMs),
    notAfter: new Date(now + days * dayMs),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey as never,
    signingKey: (by?.keys ?? keys).privateKey as never,
    extensions:
      names === null
        ? [new x509.BasicConstraintsExtension(true, undefined, true)]
        : [
            new x509.SubjectAlternativeNameExtension(
              names.map((value) => ({ type: /^[\d.]+$/.test(value) || value.includes(':') ? 'ip' : 'dns', value })),
            ),
          ],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const key = `-----BEGIN PRIVATE KEY-----\n${pkcs8.match(/.{1,64}/g)?.join('\n')}\n-----END PRIVATE KEY-----\n`;
  return { pem: `${made.toString('pem').trim()}\n`, key, made, keys: keys as MadeCertificate['keys'] };
}
