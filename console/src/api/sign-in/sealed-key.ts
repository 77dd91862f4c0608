import { cbc } from '@noble/ciphers/aes.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { pbkdf2Async } from '@noble/hashes/pbkdf2.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { type DerValue, derContent, derNumber, derTags, derValues, hexOf } from './der.ts';
import { KeyFileError, wrongPassphrase } from './key-file-error.ts';

/**
 * PKCS#8 under a passphrase: PBES2 (RFC 8018) with scrypt, as `muster` writes it, or PBKDF2, as `openssl` does, and AES in
 * CBC. In pure JavaScript: a browser has no scrypt, and nothing at all on a page that came over plain HTTP.
 */

/** Object identifiers, as hexadecimal of their DER. */
const oids = {
  pbes2: '2a864886f70d01050d',
  pbkdf2: '2a864886f70d01050c',
  scrypt: '2b06010401da47040b',
} as const;
const ciphers: Readonly<Record<string, number>> = {
  '60864801650304012a': 32,
  '608648016503040116': 24,
  '608648016503040102': 16,
};
const hashes = {
  '2a864886f70d0207': sha1,
  '2a864886f70d0209': sha256,
  '2a864886f70d020a': sha384,
  '2a864886f70d020b': sha512,
} as const;

/** A file may not ask for more: bytes that scrypt takes, and rounds. */
const most = { bytes: 256 * 1024 * 1024, scryptRounds: 64, pbkdf2Rounds: 20_000_000 } as const;

const unknown = (): KeyFileError =>
  new KeyFileError(
    'This key is locked in a way that the console does not know. “muster operator passphrase” locks it anew.',
  );

/**
 * @returns the PKCS#8 in it; the caller overwrites that
 * @throws KeyFileError; RangeError when it is not whole
 */
export async function openSealedKey(bytes: Uint8Array, passphrase: string): Promise<Uint8Array> {
  const [whole] = derValues(bytes);
  const [scheme, sealed] = derValues(derContent(whole === undefined ? [] : [whole], 0, derTags.sequence));
  if (scheme === undefined || sealed === undefined) throw new RangeError('it is cut off');
  const algorithm = derValues(scheme.content);
  if (hexOf(derContent(algorithm, 0, derTags.oid)) !== oids.pbes2) throw unknown();
  const parameters = derValues(derContent(algorithm, 1, derTags.sequence));
  const cipher = derValues(derContent(parameters, 1, derTags.sequence));
  const keyLength = ciphers[hexOf(derContent(cipher, 0, derTags.oid))];
  if (keyLength === undefined) throw unknown();
  const iv = derContent(cipher, 1, derTags.octets);
  const typed = new TextEncoder().encode(passphrase);
  const key = await derive(derValues(derContent(parameters, 0, derTags.sequence)), typed, keyLength).finally(() =>
    typed.fill(0),
  );
  try {
    const opened = cbc(key, iv).decrypt(derContent([sealed], 0, derTags.octets));
    // One wrong passphrase in 256 gives something that ends as it should.
    if (opened[0] !== derTags.sequence || derValues(opened).length !== 1) throw wrongPassphrase();
    return opened;
  } catch {
    throw wrongPassphrase();
  } finally {
    key.fill(0);
  }
}

async function derive(kdf: readonly DerValue[], passphrase: Uint8Array, dkLen: number): Promise<Uint8Array> {
  const kind = hexOf(derContent(kdf, 0, derTags.oid));
  const values = derValues(derContent(kdf, 1, derTags.sequence));
  const salt = derContent(values, 0, derTags.octets);
  if (kind === oids.scrypt) {
    const [N, r, p] = [derNumber(values, 1), derNumber(values, 2), derNumber(values, 3)];
    if (N * r * 128 > most.bytes || p > most.scryptRounds) throw unknown();
    return await scryptAsync(passphrase, salt, { N, r, p, dkLen, maxmem: most.bytes + 1024 * 1024 });
  }
  if (kind !== oids.pbkdf2) throw unknown();
  const c = derNumber(values, 1);
  // A length of the key may stand in between; which hash comes last, and is SHA-1 where it is not said.
  const named = values.slice(2).find(({ tag }) => tag === derTags.sequence);
  const hash = named === undefined ? sha1 : hashOf(hexOf(derContent(derValues(named.content), 0, derTags.oid)));
  if (hash === undefined || c < 1 || c > most.pbkdf2Rounds) throw unknown();
  return await pbkdf2Async(hash, passphrase, salt, { c, dkLen });
}

const hashOf = (oid: string) => (Object.hasOwn(hashes, oid) ? hashes[oid as keyof typeof hashes] : undefined);
