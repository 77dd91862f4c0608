import { createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

// Writes X.509 (RFC 5280) in DER (X.690). Node's crypto module reads certificates but does not create them, and a library
// that parses every kind of certificate took a tenth of the orchestrator's start.

/** Encodes a value: its tag, its length in as few bytes as possible, and its parts. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length < 0x80) return Buffer.concat([Buffer.of(tag, content.length), content]);
  const digits = content.length.toString(16);
  const length = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length), length, content]);
}
const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const bitString = (bytes: Uint8Array) => der(0x03, Buffer.of(0), bytes);
const octetString = (content: Uint8Array) => der(0x04, content);

/** Object identifiers, encoded. */
const oid = {
  commonName: Buffer.from('0603550403', 'hex'),
  basicConstraints: Buffer.from('0603551d13', 'hex'),
  subjectAltName: Buffer.from('0603551d11', 'hex'),
  extKeyUsage: Buffer.from('0603551d25', 'hex'),
  serverAuth: Buffer.from('06082b06010505070301', 'hex'),
  ed25519: Buffer.from('06032b6570', 'hex'),
  ecdsaWithSha256: Buffer.from('06082a8648ce3d040302', 'hex'),
};
const version3 = der(0xa0, Buffer.of(0x02, 1, 2));
const critical = Buffer.of(0x01, 1, 0xff);

/** Encodes a time in seconds. Years from 2050 on have four digits. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

const alternativeName = (host: string) =>
  isIP(host) === 0 ? der(0x82, Buffer.from(host, 'latin1')) : der(0x87, Buffer.from(ipaddr.parse(host).toByteArray()));

function extensions(hosts: readonly string[]): Buffer {
  const list = [sequence(oid.basicConstraints, critical, octetString(sequence()))];
  if (hosts.length > 0)
    list.push(
      sequence(oid.subjectAltName, octetString(sequence(...hosts.map(alternativeName)))),
      sequence(oid.extKeyUsage, octetString(sequence(oid.serverAuth))),
    );
  return der(0xa3, sequence(...list));
}

/**
 * Creates a self-signed certificate.
 * @param privateKey Ed25519 or P-256
 * @param subject `hosts`: names and IP addresses; `days`: lifetime, which begins yesterday to tolerate clock
 * differences
 * @returns PEM
 */
export function selfSigned(
  privateKey: KeyObject,
  subject: { commonName: string; hosts: readonly string[]; days: number },
): string {
  const isEd25519 = privateKey.asymmetricKeyType === 'ed25519';
  const algorithm = sequence(isEd25519 ? oid.ed25519 : oid.ecdsaWithSha256);
  const name = sequence(der(0x31, sequence(oid.commonName, der(0x0c, Buffer.from(subject.commonName)))));
  const notBefore = new Date(Date.now() - 86_400_000);
  const notAfter = new Date(notBefore.getTime() + subject.days * 86_400_000);
  const unsigned = sequence(
    version3,
    // A leading zero bit keeps the serial number positive.
    der(0x02, Buffer.of(1), randomBytes(15)),
    algorithm,
    name,
    sequence(time(notBefore), time(notAfter)),
    name,
    createPublicKey(privateKey).export({ format: 'der', type: 'spki' }),
    extensions(subject.hosts),
  );
  const signature = sign(isEd25519 ? null : 'sha256', unsigned, privateKey);
  const base64 = sequence(unsigned, algorithm, bitString(signature)).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`;
}
