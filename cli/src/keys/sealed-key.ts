import { createCipheriv, type KeyObject, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { derInteger, derOids, derSequence, derTags, derValue } from '../../../client/src/der.ts';

/** scrypt parameters. Each guess at the passphrase costs 16 MiB and about 0.25 s. */
const cost = { N: 16_384, r: 8, p: 5 } as const;

const octets = (content: Uint8Array): Uint8Array => derValue(derTags.octets, content);
const oid = (hex: string): Uint8Array => derValue(derTags.oid, Buffer.from(hex, 'hex'));

/**
 * Encrypts a private key as PKCS#8 `ENCRYPTED PRIVATE KEY` with PBES2 (RFC 8018), scrypt (RFC 7914), and AES-256-CBC,
 * which OpenSSL can read. Node.js itself supports only PBKDF2 with 2,048 rounds, which is too few for a key that
 * controls every machine.
 * @returns PEM
 */
export async function sealKey(key: KeyObject, passphrase: string): Promise<string> {
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);
  const wrapping = await derive(passphrase, salt, 32, { ...cost, maxmem: 64 * 1024 * 1024 });
  const cipher = createCipheriv('aes-256-cbc', wrapping, iv);
  const sealed = Buffer.concat([cipher.update(key.export({ format: 'der', type: 'pkcs8' })), cipher.final()]);
  const kdf = derSequence(
    oid(derOids.scrypt),
    derSequence(octets(salt), ...[cost.N, cost.r, cost.p, 32].map(derInteger)),
  );
  const scheme = derSequence(oid(derOids.pbes2), derSequence(kdf, derSequence(oid(derOids.aes256Cbc), octets(iv))));
  const lines = Buffer.from(derSequence(scheme, octets(sealed)))
    .toString('base64')
    .match(/.{1,64}/g)!;
  return ['-----BEGIN ENCRYPTED PRIVATE KEY-----', ...lines, '-----END ENCRYPTED PRIVATE KEY-----', ''].join('\n');
}
