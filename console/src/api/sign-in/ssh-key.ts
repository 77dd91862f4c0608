import { cbc, ctr, gcm } from '@noble/ciphers/aes.js';
import { readSshKeyHead, SshFields } from '../../../../client/src/openssh-key.ts';
import { brokenKey, KeyFileError, needsPassphrase, otherKind, wrongPassphrase } from './key-file-error.ts';

/** Reads OpenSSH private keys, encrypted or unencrypted. PROTOCOL.key in the OpenSSH source specifies the format. */

const kind = 'ssh-ed25519';

/** Supported ciphers, with the key and initialization vector lengths in bytes. */
const ciphers = {
  'aes128-ctr': { key: 16, iv: 16, open: ctr },
  'aes192-ctr': { key: 24, iv: 16, open: ctr },
  'aes256-ctr': { key: 32, iv: 16, open: ctr },
  'aes256-cbc': { key: 32, iv: 16, open: (key: Uint8Array, iv: Uint8Array) => cbc(key, iv, { disablePadding: true }) },
  'aes256-gcm@openssh.com': { key: 32, iv: 12, open: gcm },
} as const;

/** Maximum number of bcrypt rounds in a file. `ssh-keygen` writes 16 to 24, and each round takes milliseconds. */
const maxRounds = 1_024;

/**
 * @param bytes the decoded body between the header and footer lines
 * @returns a copy of the seed
 * @throws KeyFileError; RangeError if the key is truncated
 */
export async function readSshKey(bytes: Uint8Array, passphrase: string | null): Promise<Uint8Array> {
  const head = readSshKeyHead(bytes);
  if (head === null) throw brokenKey();
  const { cipher, kdf, kdfOptions, publicBlob, fields } = head;
  const named = new SshFields(publicBlob).text();
  if (named.startsWith('sk-'))
    throw new KeyFileError(
      'This key is on a security key, which the console cannot use. Sign in with “muster web-login”.',
    );
  if (named !== kind) throw otherKind(`an OpenSSH key of type ${/^[\w@.-]+$/.test(named) ? named : 'unknown'}`);
  const sealed = fields.bytes();
  if (cipher === 'none') return seedOf(new SshFields(sealed));
  if (passphrase === null) throw needsPassphrase();
  if (!Object.hasOwn(ciphers, cipher) || kdf !== 'bcrypt')
    throw new KeyFileError(
      'The console does not support the encryption of this key. Encrypt the key again with “ssh-keygen -p -Z aes256-ctr -f FILE”.',
    );
  const way = ciphers[cipher as keyof typeof ciphers];
  const wrapping = await derive(new SshFields(kdfOptions), passphrase, way.key + way.iv);
  let opened: Uint8Array | null = null;
  try {
    const locked = cipher.includes('gcm') ? joined(sealed, fields.rest.subarray(0, 16)) : sealed;
    opened = way.open(wrapping.subarray(0, way.key), wrapping.subarray(way.key)).decrypt(locked);
  } catch {
    throw wrongPassphrase();
  } finally {
    wrapping.fill(0);
  }
  try {
    return seedOf(new SshFields(opened), wrongPassphrase);
  } finally {
    opened.fill(0);
  }
}

async function derive(options: SshFields, passphrase: string, length: number): Promise<Uint8Array> {
  const { default: bcrypt } = await import('bcrypt-pbkdf');
  const salt = options.bytes();
  const rounds = options.number();
  if (rounds < 1 || rounds > maxRounds) throw brokenKey();
  const typed = new TextEncoder().encode(passphrase);
  const key = new Uint8Array(length);
  const failed = bcrypt.pbkdf(typed, typed.length, salt, salt.length, key, length, rounds);
  typed.fill(0);
  // bcrypt-pbkdf fails for an empty passphrase. No key is encrypted with an empty passphrase.
  if (failed !== 0) throw wrongPassphrase();
  return key;
}

/** @param fault returns the error to throw if the fields are not valid */
function seedOf(fields: SshFields, fault: () => KeyFileError = brokenKey): Uint8Array {
  const check = fields.number();
  if (check !== fields.number()) throw fault();
  if (fields.text() !== kind || fields.bytes().length !== 32) throw fault();
  const both = fields.bytes();
  if (both.length !== 64) throw fault();
  return both.slice(0, 32);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
