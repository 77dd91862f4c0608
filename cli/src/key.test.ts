import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeHome } from '../test/process.ts';
import { CliError, exits } from './exit.ts';
import { makeKey, readKey } from './key.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let path: string;
beforeEach(async () => {
  home = await makeHome();
  path = join(home.path, 'config', 'muster', 'operator.key');
});
afterEach(() => home.remove());

const now = () => 1_795_000_000;
const modeOf = async (file: string) => ((await stat(file)).mode & 0o777).toString(8);

test('a new key is 0600 in a directory of 0700, whatever the umask', async () => {
  const before = process.umask(0);
  try {
    await makeKey(path, { replace: false, now });
  } finally {
    process.umask(before);
  }
  expect(await modeOf(path)).toBe('600');
  expect(await modeOf(join(path, '..'))).toBe('700');
  expect(await readdir(join(path, '..'))).toEqual(['operator.key']);
});

test('a key that was written is read back, and its signature verifies under the public half', async () => {
  const { key } = await makeKey(path, { replace: false, now });
  const read = await readKey(path);
  expect(read.publicKey).toBe(key.publicKey);
  expect(read.operatorId).toBe(await idOfKey(Buffer.from(key.publicKey, 'hex')));
  const x = Buffer.from(read.publicKey, 'hex').toString('base64url');
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const message = Buffer.from('nonce');
  expect(verify(null, message, publicKey, read.sign(message))).toBe(true);
});

test('the seed as hexadecimal text is a key too', async () => {
  // The first key of RFC 8032, section 7.1.
  await mkdir(home.path, { recursive: true });
  const file = join(home.path, 'seed');
  await writeFile(file, '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n', { mode: 0o600 });
  expect((await readKey(file)).publicKey).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
});

test('an existing key is left alone', async () => {
  await makeKey(path, { replace: false, now });
  const before = await readFile(path, 'utf8');
  const again = makeKey(path, { replace: false, now });
  await expect(again).rejects.toMatchObject({ code: 'key_exists', exit: exits.failed });
  expect(await readFile(path, 'utf8')).toBe(before);
  expect(await readdir(join(path, '..'))).toEqual(['operator.key']);
});

test('a key that is replaced is kept beside', async () => {
  await makeKey(path, { replace: false, now });
  const before = await readFile(path, 'utf8');
  const { former } = await makeKey(path, { replace: true, now });
  expect(former).toBe(`${path}.20261118T110640Z`);
  expect(await readFile(former ?? '', 'utf8')).toBe(before);
  expect(await modeOf(former ?? '')).toBe('600');
  expect(await readFile(path, 'utf8')).not.toBe(before);
});

test.each([
  ['others may read it', 'key_unusable', async () => chmod(path, 0o640)],
  ['it is not a key', 'key_unusable', async () => writeFile(path, 'hello')],
  [
    'it is a key of another kind',
    'key_unusable',
    async () => {
      const { privateKey } = generateKeyPairSync('x25519');
      await writeFile(path, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    },
  ],
])('a key is refused with what to do: %s', async (_, code, spoil) => {
  await makeKey(path, { replace: false, now });
  await spoil();
  const error = await readKey(path).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(CliError);
  expect(error).toMatchObject({ code, exit: exits.signIn });
  expect((error as CliError).remedy).toBeTruthy();
});

test('without a key it says how to make one', async () => {
  await expect(readKey(path)).rejects.toMatchObject({ code: 'key_missing', exit: exits.signIn });
});
