import { createCipheriv, type KeyObject, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';

/** What guessing one passphrase costs: 16 MiB and five rounds over it, about a quarter of a second. */
const cost = { N: 16_384, r: 8, p: 5 } as const;

const oid = {
  pbes2: '06092a864886f70d01050d',
  scrypt: '06092b06010401da47040b',
  aes256Cbc: '060960864801650304012a',
} as const;

/** One ASN.1 value in DER: tag, length, content. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length < 0x80 ? Buffer.from([body.length]) : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}
const sequence = (...content: Buffer[]): Buffer => der(0x30, ...content);
const octets = (content: Buffer): Buffer => der(0x04, content);
const named = (hex: string): Buffer => Buffer.from(hex, 'hex');
const integer = (value: number): Buffer => {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  return der(0x02, bytes[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
};

/**
 * A private key under a passphrase: PKCS#8 `ENCRYPTED PRIVATE KEY` with PBES2 (RFC 8018), scrypt (RFC 7914) and
 * AES-256-CBC, which OpenSSL reads too. Node itself can only write it with 2,048 rounds of PBKDF2, too few for a file
 * that opens every machine.
 * @returns PEM
 */
export async function sealKey(key: KeyObject, passphrase: string): Promise<string> {
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);
  const wrapping = await derive(passphrase, salt, 32, { ...cost, maxmem: 64 * 1024 * 1024 });
  const cipher = createCipheriv('aes-256-cbc', wrapping, iv);
  const sealed = Buffer.concat([cipher.update(key.export({ format: 'der', type: 'pkcs8' })), cipher.final()]);
  const kdf = sequence(
    named(oid.scrypt),
    sequence(octets(salt), integer(cost.N), integer(cost.r), integer(cost.p), integer(32)),
  );
  const scheme = sequence(named(oid.pbes2), sequence(kdf, sequence(named(oid.aes256Cbc), octets(iv))));
  const lines = sequence(scheme, octets(sealed))
    .toString('base64')
    .match(/.{1,64}/g)!;
  return ['-----BEGIN ENCRYPTED PRIVATE KEY-----', ...lines, '-----END ENCRYPTED PRIVATE KEY-----', ''].join('\n');
}
