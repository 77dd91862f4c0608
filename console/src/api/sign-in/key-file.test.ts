import { verify } from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';
import * as keys from '../../../test/keys.ts';
import { bytesOfHex, hexOf } from './der.ts';
import { ed25519PublicKey, signEd25519 } from './ed25519.ts';
import { readKeyFile } from './key-file.ts';
import type { KeyFileError } from './key-file-error.ts';

const publicKeyOf = async (text: string, passphrase: string | null) =>
  hexOf(ed25519PublicKey(await readKeyFile(text, passphrase)));
const refusal = (text: string, passphrase: string | null = null): Promise<KeyFileError> =>
  readKeyFile(text, passphrase).then(
    () => Promise.reject(new Error('it was read')),
    (error: KeyFileError) => error,
  );

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each([
  ['PKCS#8', keys.plain, keys.publicKey],
  [
    'PKCS#8 with what mail adds to it',
    `Bag Attributes: none\r\n${keys.plain.replaceAll('\n', '\r\n')}\r\n`,
    keys.publicKey,
  ],
  ['a seed in hexadecimal', ` ${keys.seed.toUpperCase()}\n`, keys.publicKey],
  ['OpenSSH', keys.sshPlain, keys.sshPublicKeys.first],
])('%s is read as it is', async (_, text, publicKey) => {
  expect(await publicKeyOf(text, null)).toBe(publicKey);
});

test.each([
  ['PKCS#8 as muster locks it', keys.musterSealed, keys.publicKey],
  ['PKCS#8 as openssl locks it', keys.opensslPbkdf2, keys.publicKey],
  ['PKCS#8 as an openssl of old locks it', keys.opensslSha1, keys.publicKey],
  ['PKCS#8 as openssl locks it with scrypt', keys.opensslScrypt, keys.publicKey],
  ['OpenSSH as ssh-keygen locks it', keys.sshCtr, keys.sshPublicKeys.second],
  ['OpenSSH with AES in GCM', keys.sshGcm, keys.sshPublicKeys.first],
  ['OpenSSH with AES in CBC', keys.sshCbc, keys.sshPublicKeys.first],
])('%s asks for its passphrase, and takes it', async (_, text, publicKey) => {
  expect(await refusal(text)).toMatchObject({ needsPassphrase: true, message: expect.stringMatching(/locked/) });
  expect(await publicKeyOf(text, keys.passphrase)).toBe(publicKey);
});

test.each([
  ['PKCS#8', keys.opensslPbkdf2, 'password'],
  ['PKCS#8', keys.opensslPbkdf2, ''],
  ['OpenSSH', keys.sshCtr, 'password'],
  ['OpenSSH', keys.sshCtr, ''],
  ['OpenSSH with a tag', keys.sshGcm, 'password'],
])('%s takes no other passphrase', async (_, text, wrong) => {
  expect(await refusal(text, wrong)).toMatchObject({
    needsPassphrase: true,
    message: expect.stringMatching(/not the passphrase/),
  });
});

test.each([
  ['nothing', ' \n', /empty/],
  ['another file', 'name: web\n', /no private key/],
  ['a large file', 'x'.repeat(70_000), /too large/],
  ['the public line', keys.sshPublicLine, /public half/],
  ['the public key in PEM', keys.publicPem, /public half/],
  ['an RSA key', keys.rsa, /an RSA key.*muster operator init/],
  ['a key to agree on keys with', keys.x25519, /X25519/],
  ['a key of OpenSSH on a curve of NIST', keys.sshEcdsa, /ecdsa-sha2-nistp256/],
  ['a part of a key', keys.plain.slice(0, 60), /not whole/],
  ['a key with a hole', keys.plain.replace(/[A-Za-z0-9+/]{12}(?=\n-----END)/, ''), /not whole/],
  ['a key of OpenSSH with a hole', keys.sshPlain.replace(/\n[A-Za-z0-9+/]+/, ''), /not whole/],
  ['a key of PuTTY', 'PuTTY-User-Key-File-3: ssh-ed25519\n', /PuTTYgen/],
])('%s is no key, and it is said why', async (_, text, why) => {
  const error = await refusal(text);
  expect(error).toMatchObject({ name: 'KeyFileError', needsPassphrase: false });
  expect(error.message).toMatch(why);
});

test.each([
  ['triple DES', keys.opensslDes3, /operator passphrase/],
  ['ChaCha', keys.sshChacha, /ssh-keygen -p -Z aes256-ctr/],
])('a key that is locked with %s says how it is locked anew', async (_, text, what) => {
  const error = await refusal(text, keys.passphrase);
  expect(error.needsPassphrase).toBe(false);
  expect(error.message).toMatch(what);
});

test('a file cannot ask for more memory than a browser has', async () => {
  // N of scrypt, 2^14, becomes 2^38.
  const body = keys.musterSealed.split('\n').slice(2, -2).join('');
  const hex = Buffer.from(body, 'base64').toString('hex');
  expect(hex).toContain('02024000');
  // In place of the length of the key, which may be left out.
  const grown = Buffer.from(hex.replace('02024000020108020105020120', '02054000000000020108020105'), 'hex');
  const text = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${grown.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
  expect((await refusal(text, keys.passphrase)).message).toMatch(/does not know/);
});

test.each(['with', 'without'])('a signature is good, %s WebCrypto', async (how) => {
  if (how === 'without') vi.stubGlobal('crypto', {});
  const message = bytesOfHex('00ff'.repeat(16));
  const signature = await signEd25519(await readKeyFile(keys.plain, null), message);
  vi.unstubAllGlobals();
  expect(verify(null, message, keys.publicPem, signature)).toBe(true);
});
