import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

/** Creates a self-signed P-256 certificate for the loopback address. */
export async function makeCertificate(): Promise<{ key: string; cert: string; fingerprint: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=muster test',
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])],
  });
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  const digest = await crypto.subtle.digest('SHA-256', certificate.rawData);
  return { key, cert: certificate.toString('pem'), fingerprint: Buffer.from(digest).toString('hex') };
}
