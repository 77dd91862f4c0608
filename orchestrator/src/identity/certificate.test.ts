import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { selfSigned } from './certificate.ts';

const keys = {
  ed25519: generateKeyPairSync('ed25519').privateKey,
  'P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
};

test.each(Object.entries(keys))('signs a certificate with an %s key', (_, key) => {
  const certificate = new X509Certificate(selfSigned(key, { commonName: 'it', hosts: [], days: 1 }));
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.checkPrivateKey(key)).toBe(true);
  expect(certificate.checkIssued(certificate)).toBe(true);
  expect(certificate).toMatchObject({ subject: 'CN=it', issuer: 'CN=it', ca: false });
  expect(certificate.subjectAltName).toBeUndefined();
  expect(certificate.serialNumber).toMatch(/^01[0-9A-F]{30}$/);
});

test('names hosts of each kind, and permits only the authentication of a server', () => {
  const long = `${'a'.repeat(60)}.`.repeat(4);
  const hosts = ['localhost', `${long}example`, '127.0.0.1', '2001:db8::1:0', '::ffff:10.0.0.1'];
  const certificate = new X509Certificate(selfSigned(keys['P-256'], { commonName: 'it', hosts, days: 1 }));
  expect(certificate.subjectAltName).toBe(
    `DNS:localhost, DNS:${long}example, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:1:0, IP Address:0:0:0:0:0:FFFF:A00:1`,
  );
  // Some clients refuse a length in more bytes than it needs.
  expect(certificate.raw.includes(Buffer.of(0x82, 0x81, hosts[1]!.length))).toBe(true);
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
});

test.each([1, 825, 36_500])('gives a certificate a lifetime of %i days that began yesterday', (days) => {
  const now = Date.now();
  const { validFromDate, validToDate } = new X509Certificate(
    selfSigned(keys.ed25519, { commonName: 'it', hosts: [], days }),
  );
  expect(Math.abs(validFromDate.getTime() + 86_400_000 - now)).toBeLessThan(60_000);
  expect(validToDate.getTime() - validFromDate.getTime()).toBe(days * 86_400_000);
});
