import { bytesOfBase64, bytesOfHex, hexOf } from '../../../../client/src/bytes.ts';
import { derContent, derNumber, derTags, derValues } from '../../../../client/src/der.ts';
import { brokenKey, KeyFileError, maxKeyBytes, needsPassphrase, otherKind } from './key-file-error.ts';

/** Key type names by object identifier (hexadecimal DER). */
const keyKinds: Readonly<Record<string, string>> = {
  '2b6570': 'ed25519',
  '2b6571': 'an Ed448 key',
  '2b656e': 'an X25519 key, which cannot sign',
  '2a864886f70d010101': 'an RSA key',
  '2a8648ce3d0201': 'a key on a NIST curve',
  '2a8648ce380401': 'a DSA key',
};

/**
 * Reads an operator's key in every format that `muster`, `openssl`, and `ssh-keygen` write: PKCS#8 in PEM or an OpenSSH
 * key, each encrypted or unencrypted, or the seed as 64 hexadecimal characters. Loads the code for encrypted keys on
 * demand.
 * @param passphrase null if the operator entered none
 * @returns the 32-byte seed; the caller must overwrite it
 * @throws KeyFileError
 */
export async function readKeyFile(text: string, passphrase: string | null): Promise<Uint8Array> {
  if (text.length > maxKeyBytes) throw new KeyFileError('This file is too large for a key. Choose another.');
  const trimmed = text.trim();
  if (trimmed === '') throw new KeyFileError('This file is empty. Choose another.');
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return bytesOfHex(trimmed);
  if (isPublic(trimmed))
    throw new KeyFileError(
      'This is a public key. Open the private key, usually the file with the same name without “.pub”.',
    );
  const [, label, body] = /-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----/.exec(text) ?? [];
  if (label === undefined || body === undefined) {
    if (text.includes('-----BEGIN ')) throw brokenKey();
    if (trimmed.startsWith('PuTTY-User-Key-File'))
      throw new KeyFileError('This is a PuTTY key. Export it in PuTTYgen as an OpenSSH key, and open that file.');
    throw new KeyFileError(
      'This is not a private key. The console reads PKCS#8 and OpenSSH files of an Ed25519 key, or its seed as 64 hexadecimal characters.',
    );
  }
  if (/^Proc-Type: /m.test(body)) throw otherKind('a key in an old PEM format, which does not support Ed25519 keys');
  const bytes = bytesOfBase64(body);
  if (bytes === null) throw brokenKey();
  try {
    return await readLabelled(label, bytes, passphrase);
  } catch (error) {
    if (error instanceof RangeError) throw brokenKey();
    throw error;
  } finally {
    bytes.fill(0);
  }
}

const isPublic = (text: string): boolean =>
  /^(ssh-|ecdsa-|sk-)[\w@.-]+ AAAA/.test(text) || /-----BEGIN (RSA |SSH2 )?PUBLIC KEY-----/.test(text);

async function readLabelled(label: string, bytes: Uint8Array, passphrase: string | null): Promise<Uint8Array> {
  switch (label) {
    case 'PRIVATE KEY':
      return seedOfPkcs8(bytes);
    case 'ENCRYPTED PRIVATE KEY': {
      if (passphrase === null) throw needsPassphrase();
      const { openSealedKey } = await import('./sealed-key.ts');
      const opened = await openSealedKey(bytes, passphrase);
      try {
        return seedOfPkcs8(opened);
      } finally {
        opened.fill(0);
      }
    }
    case 'OPENSSH PRIVATE KEY': {
      const { readSshKey } = await import('./ssh-key.ts');
      return await readSshKey(bytes, passphrase);
    }
    case 'RSA PRIVATE KEY':
      throw otherKind('an RSA key');
    case 'EC PRIVATE KEY':
    case 'EC PARAMETERS':
      throw otherKind('a key on a NIST curve');
    case 'DSA PRIVATE KEY':
      throw otherKind('a DSA key');
    case 'CERTIFICATE':
      throw new KeyFileError('This is a certificate, which contains no private key. Open the private key instead.');
    default:
      throw new KeyFileError('The console does not support this key format.');
  }
}

/** @throws KeyFileError for another key type or a seed of another length; RangeError if the bytes are not PKCS#8 */
function seedOfPkcs8(bytes: Uint8Array): Uint8Array {
  const [container] = derValues(bytes);
  const fields = derValues(derContent(container === undefined ? [] : [container], 0, derTags.sequence));
  derNumber(fields, 0);
  const algorithm = derValues(derContent(fields, 1, derTags.sequence));
  const kind = keyKinds[hexOf(derContent(algorithm, 0, derTags.oid))] ?? 'a key of an unsupported type';
  if (kind !== 'ed25519') throw otherKind(kind);
  const seed = derContent(derValues(derContent(fields, 2, derTags.octets)), 0, derTags.octets);
  if (seed.length !== 32) throw brokenKey();
  return seed.slice();
}
