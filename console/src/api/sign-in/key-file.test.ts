import { verify } from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';
import { bytesOfHex, hexOf } from '../../../../client/src/bytes.ts';
import * as keys from '../../../test/keys.ts';
import { ed25519PublicKey, signEd25519 } from './ed25519.ts';
import { readKeyFile } from './key-file.ts';
import type { KeyFileError } from './key-file-error.ts';

const publicKeyOf = async (text: string, passphrase: string | null) =>
  hexOf(ed25519PublicKey(await readKeyFile(text, passphrase)));
const refusal = (text: string, passphrase: string | null = null): Promise<KeyFileError> =>
  readKeyFile(text, passphrase).then(
    () => Promise.reject(new Error('the key was accepted')),
    (error: KeyFileError) => error,
  );

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each([
  ['PKCS#8', keys.plain, keys.publicKey],
  ['PKCS#8 with mail headers', `Bag Attributes: none\r\n${keys.plain.replaceAll('\n', '\r\n')}\r\n`, keys.publicKey],
  ['a seed in hexadecimal', ` ${keys.seed.toUpperCase()}\n`, keys.publicKey],
  ['OpenSSH', keys.sshPlain, keys.sshPublicKeys.first],
])('reads the unencrypted key %s', async (_, text, publicKey) => {
  expect(await publicKeyOf(text, null)).toBe(publicKey);
});

test.each([
  ['PKCS#8 encrypted by muster', keys.musterSealed, keys.publicKey],
  ['PKCS#8 encrypted by openssl', keys.opensslPbkdf2, keys.publicKey],
  ['PKCS#8 encrypted by an old openssl', keys.opensslSha1, keys.publicKey],
  ['PKCS#8 encrypted by openssl with scrypt', keys.opensslScrypt, keys.publicKey],
  ['OpenSSH encrypted by ssh-keygen', keys.sshCtr, keys.sshPublicKeys.second],
  ['OpenSSH with AES in GCM', keys.sshGcm, keys.sshPublicKeys.first],
  ['OpenSSH with AES in CBC', keys.sshCbc, keys.sshPublicKeys.first],
])('asks for the passphrase of %s and reads the key with it', async (_, text, publicKey) => {
  expect(await refusal(text)).toMatchObject({ needsPassphrase: true, message: expect.stringMatching(/encrypted/) });
  expect(await publicKeyOf(text, keys.passphrase)).toBe(publicKey);
});

test.each([
  ['PKCS#8', keys.opensslPbkdf2, 'password'],
  ['PKCS#8', keys.opensslPbkdf2, ''],
  ['OpenSSH', keys.sshCtr, 'password'],
  ['OpenSSH', keys.sshCtr, ''],
  ['OpenSSH with a tag', keys.sshGcm, 'password'],
])('refuses a wrong passphrase for %s', async (_, text, wrong) => {
  expect(await refusal(text, wrong)).toMatchObject({
    needsPassphrase: true,
    message: expect.stringMatching(/passphrase is wrong/),
  });
});

test.each([
  ['nothing', ' \n', /empty/],
  ['another file', 'name: web\n', /not a private key/],
  ['a large file', 'x'.repeat(70_000), /too large/],
  ['the public line', keys.sshPublicLine, /public key/],
  ['the public key in PEM', keys.publicPem, /public key/],
  ['an RSA key', keys.rsa, /an RSA key.*muster operator init/],
  ['an X25519 key', keys.x25519, /X25519/],
  ['an OpenSSH key on a NIST curve', keys.sshEcdsa, /ecdsa-sha2-nistp256/],
  ['a truncated key', keys.plain.slice(0, 60), /incomplete/],
  ['a key with missing characters', keys.plain.replace(/[A-Za-z0-9+/]{12}(?=\n-----END)/, ''), /incomplete/],
  ['an OpenSSH key with a missing line', keys.sshPlain.replace(/\n[A-Za-z0-9+/]+/, ''), /incomplete/],
  ['a PuTTY key', 'PuTTY-User-Key-File-3: ssh-ed25519\n', /PuTTYgen/],
])('refuses %s and explains why', async (_, text, why) => {
  const error = await refusal(text);
  expect(error).toMatchObject({ name: 'KeyFileError', needsPassphrase: false });
  expect(error.message).toMatch(why);
});

test.each([
  ['triple DES', keys.opensslDes3, /operator passphrase/],
  ['ChaCha', keys.sshChacha, /ssh-keygen -p -Z aes256-ctr/],
])('refuses a key encrypted with %s and explains how to encrypt it again', async (_, text, what) => {
  const error = await refusal(text, keys.passphrase);
  expect(error.needsPassphrase).toBe(false);
  expect(error.message).toMatch(what);
});

test('refuses a key file whose scrypt parameters require too much memory', async () => {
  // Changes scrypt's cost parameter N from 2^14 to 2^38.
  const body = keys.musterSealed.split('\n').slice(2, -2).join('');
  const hex = Buffer.from(body, 'base64').toString('hex');
  expect(hex).toContain('02024000');
  // The larger number occupies the bytes of the optional key length, so that the outer lengths remain valid.
  const oversized = Buffer.from(hex.replace('02024000020108020105020120', '02054000000000020108020105'), 'hex');
  const text = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${oversized.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
  expect((await refusal(text, keys.passphrase)).message).toMatch(/does not support/);
});

test.each(['with', 'without'])('signs a message %s WebCrypto', async (how) => {
  if (how === 'without') vi.stubGlobal('crypto', {});
  const message = bytesOfHex('00ff'.repeat(16));
  const signature = await signEd25519(await readKeyFile(keys.plain, null), message);
  vi.unstubAllGlobals();
  expect(verify(null, message, keys.publicPem, signature)).toBe(true);
});
