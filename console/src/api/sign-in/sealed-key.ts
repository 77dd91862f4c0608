import { cbc } from '@noble/ciphers/aes.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { pbkdf2Async } from '@noble/hashes/pbkdf2.js';
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { hexOf } from '../../../../client/src/bytes.ts';
import { type DerValue, derContent, derNumber, derOids, derTags, derValues } from '../../../../client/src/der.ts';
import { KeyFileError, wrongPassphrase } from './key-file-error.ts';

/**
 * Decrypts encrypted PKCS#8: PBES2 (RFC 8018) with AES-CBC and either scrypt, which `muster` writes, or PBKDF2, which
 * `openssl` writes. Uses pure JavaScript, because browsers have no scrypt, and have no WebCrypto on pages served over
 * plain HTTP.
 */

/** Ciphers by object identifier, with their key lengths in bytes. */
const ciphers: Readonly<Record<string, number>> = {
  [derOids.aes256Cbc]: 32,
  [derOids.aes192Cbc]: 24,
  [derOids.aes128Cbc]: 16,
};
const hashes = {
  '2a864886f70d0207': sha1,
  '2a864886f70d0209': sha256,
  '2a864886f70d020a': sha384,
  '2a864886f70d020b': sha512,
} as const;

/** Limits on a file's cost parameters: scrypt memory in bytes, and rounds. */
const limits = { bytes: 256 * 1024 * 1024, scryptRounds: 64, pbkdf2Rounds: 20_000_000 } as const;

const unknown = (): KeyFileError =>
  new KeyFileError(
    'The console does not support the encryption of this key. Encrypt the key again with “muster operator passphrase”.',
  );

/**
 * Returns the decrypted PKCS#8; the caller must overwrite it.
 * @throws KeyFileError; RangeError if the DER is truncated
 */
export async function openSealedKey(bytes: Uint8Array, passphrase: string): Promise<Uint8Array> {
  const [container] = derValues(bytes);
  const [scheme, sealed] = derValues(derContent(container === undefined ? [] : [container], 0, derTags.sequence));
  if (scheme === undefined || sealed === undefined) throw new RangeError('truncated');
  const algorithm = derValues(scheme.content);
  if (hexOf(derContent(algorithm, 0, derTags.oid)) !== derOids.pbes2) throw unknown();
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
    // In 1 of 256 cases, decryption with a wrong passphrase yields valid padding.
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
  if (kind === derOids.scrypt) {
    const [N, r, p] = [derNumber(values, 1), derNumber(values, 2), derNumber(values, 3)];
    if (N * r * 128 > limits.bytes || p > limits.scryptRounds) throw unknown();
    return await scryptAsync(passphrase, salt, { N, r, p, dkLen, maxmem: limits.bytes + 1024 * 1024 });
  }
  if (kind !== derOids.pbkdf2) throw unknown();
  const c = derNumber(values, 1);
  // An optional key length comes first; the hash comes last and defaults to SHA-1 (RFC 8018, A.2).
  const named = values.slice(2).find(({ tag }) => tag === derTags.sequence);
  const hash = named === undefined ? sha1 : hashOf(hexOf(derContent(derValues(named.content), 0, derTags.oid)));
  if (hash === undefined || c < 1 || c > limits.pbkdf2Rounds) throw unknown();
  return await pbkdf2Async(hash, passphrase, salt, { c, dkLen });
}

const hashOf = (oid: string) => (Object.hasOwn(hashes, oid) ? hashes[oid as keyof typeof hashes] : undefined);
