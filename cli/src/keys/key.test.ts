import { execFileSync, spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeHome } from '../../test/process.ts';
import { CliError, exits } from '../exit.ts';
import { readPrivate, readKey as readWith } from './key.ts';
import { makeKey, resealKey, useFile, usePublicLine } from './make-key.ts';
import { createPassphrases } from './passphrase.ts';
import type { Prompter } from './prompt.ts';
import { keysOfAgent, readPublicLine } from './ssh-key.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let path: string;
beforeEach(async () => {
  home = await makeHome();
  path = join(home.path, 'config', 'muster', 'operator.key');
});
afterEach(() => home.remove());

const now = () => 1_795_000_000;
/** Returns a prompter that gives these answers in order. @param answers null to simulate a missing terminal */
const typing = (answers: string[] | null): Prompter => ({
  interactive: answers !== null,
  confirm: async () => false,
  ask: async () => '',
  choose: async () => null,
  secret: async () => answers?.shift() ?? expect.fail('asked once too often'),
});
const readKey = (
  file: string,
  { answers = null, env = {} }: { answers?: string[] | null; env?: Record<string, string> } = {},
) => readWith(file, { passphrases: createPassphrases(env, typing(answers)), agentSocket: env.SSH_AUTH_SOCK });
const message = Buffer.from('nonce');
const isSignedBy = (publicKey: string, signature: Uint8Array): boolean => {
  const x = Buffer.from(publicKey, 'hex').toString('base64url');
  return verify(null, message, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature);
};
const modeOf = async (file: string) => ((await stat(file)).mode & 0o777).toString(8);

test('creates a key with mode 0600 in a directory with mode 0700, regardless of the umask', async () => {
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

test('reads back a written key, whose signatures can be verified with the public key', async () => {
  const { key } = await makeKey(path, { replace: false, now });
  const read = await readKey(path);
  expect(read.publicKey).toBe(key.publicKey);
  expect(read.operatorId).toBe(await idOfKey(Buffer.from(key.publicKey, 'hex')));
  expect(isSignedBy(read.publicKey, await read.sign(message))).toBe(true);
});

test('reads a seed in hexadecimal', async () => {
  // The first private key of RFC 8032, section 7.1.
  await mkdir(home.path, { recursive: true });
  const file = join(home.path, 'seed');
  await writeFile(file, '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n', { mode: 0o600 });
  expect((await readKey(file)).publicKey).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
});

test('does not replace an existing key', async () => {
  await makeKey(path, { replace: false, now });
  const before = await readFile(path, 'utf8');
  const again = makeKey(path, { replace: false, now });
  await expect(again).rejects.toMatchObject({ code: 'key_exists', exit: exits.failed });
  expect(await readFile(path, 'utf8')).toBe(before);
  expect(await readdir(join(path, '..'))).toEqual(['operator.key']);
});

test('keeps a replaced key under a different name', async () => {
  await makeKey(path, { replace: false, now });
  const before = await readFile(path, 'utf8');
  const { former } = await makeKey(path, { replace: true, now });
  expect(former).toBe(`${path}.20261118T110640Z`);
  expect(await readFile(former ?? '', 'utf8')).toBe(before);
  expect(await modeOf(former ?? '')).toBe('600');
  expect(await readFile(path, 'utf8')).not.toBe(before);
});

test.each([
  ['readable by other users', 'key_unusable', async () => chmod(path, 0o640)],
  ['not a key', 'key_unusable', async () => writeFile(path, 'hello')],
  [
    'a key of another type',
    'key_unusable',
    async () => {
      const { privateKey } = generateKeyPairSync('x25519');
      await writeFile(path, privateKey.export({ format: 'pem', type: 'pkcs8' }));
    },
  ],
])('explains how to replace a key that it refuses: %s', async (_, code, spoil) => {
  await makeKey(path, { replace: false, now });
  await spoil();
  const error = await readKey(path).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(CliError);
  expect(error).toMatchObject({ code, exit: exits.signIn });
  expect((error as CliError).remedy).toBeTruthy();
});

test('reports a missing key and how to create one', async () => {
  await expect(readKey(path)).rejects.toMatchObject({ code: 'key_missing', exit: exits.signIn });
});

describe('keys with a passphrase', () => {
  test('asks for the passphrase only when signing: once, and again after a wrong passphrase', async () => {
    const { key } = await makeKey(path, { replace: false, now, passphrase: 'correct horse' });
    expect(await modeOf(path)).toBe('600');
    expect(await readFile(path, 'utf8')).not.toContain('BEGIN PRIVATE KEY');
    const answers = ['battery', 'correct horse'];
    const read = await readKey(path, { answers });
    expect(read).toMatchObject({ publicKey: key.publicKey, operatorId: key.operatorId, storage: 'sealed' });
    expect(answers).toHaveLength(2);
    expect(isSignedBy(key.publicKey, await read.sign(message))).toBe(true);
    expect(isSignedBy(key.publicKey, await read.sign(message))).toBe(true);
  });

  test('fails after three wrong passphrases, after one from the environment, and without a terminal', async () => {
    await makeKey(path, { replace: false, now, passphrase: 'correct horse' });
    const wrong = await readKey(path, { answers: ['a', 'b', 'c'] });
    await expect(wrong.sign(message)).rejects.toMatchObject({ code: 'passphrase_wrong', exit: exits.signIn });
    const alone = await readKey(path);
    await expect(alone.sign(message)).rejects.toMatchObject({ code: 'key_locked', exit: exits.signIn });
    const given = await readKey(path, { env: { MUSTER_KEY_PASSPHRASE: 'wrong' } });
    await expect(given.sign(message)).rejects.toMatchObject({ code: 'passphrase_wrong' });
  });

  test('reads the passphrase from the environment or from the file that it specifies', async () => {
    const { key } = await makeKey(path, { replace: false, now, passphrase: 'correct horse' });
    const file = join(home.path, 'passphrase');
    await writeFile(file, 'correct horse\nand nothing else\n');
    for (const env of [{ MUSTER_KEY_PASSPHRASE: 'correct horse' }, { MUSTER_KEY_PASSPHRASE_FILE: file }])
      expect(isSignedBy(key.publicKey, await (await readKey(path, { env })).sign(message))).toBe(true);
  });

  test('refuses a key that does not match its public key', async () => {
    await makeKey(path, { replace: false, now, passphrase: 'correct horse' });
    const text = await readFile(path, 'utf8');
    await writeFile(path, text.replace(/^Public-Key: .{4}/, 'Public-Key: 0123'));
    const read = await readKey(path, { answers: ['correct horse'] });
    await expect(read.sign(message)).rejects.toMatchObject({ code: 'key_unusable' });
  });

  test('exchanges encrypted keys with OpenSSL in both directions', async () => {
    const { key } = await makeKey(path, { replace: false, now, passphrase: 'correct horse' });
    const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const said = openssl('pkey', '-in', path, '-passin', 'pass:correct horse', '-pubout', '-outform', 'DER');
    expect(said.subarray(-32).toString('hex')).toBe(key.publicKey);
    const other = join(home.path, 'other.pem');
    openssl('genpkey', '-algorithm', 'ed25519', '-aes256', '-pass', 'pass:staple', '-out', other);
    await chmod(other, 0o600);
    const read = await readKey(other, { answers: ['staple'] });
    expect(isSignedBy(read.publicKey, await read.sign(message))).toBe(true);
  });

  test('changes and removes a passphrase', async () => {
    const { key } = await makeKey(path, { replace: false, now });
    const unlocked = {
      passphrases: createPassphrases({ MUSTER_KEY_PASSPHRASE: 'first one' }, typing(null)),
      agentSocket: undefined,
    };
    await resealKey(path, await readPrivate(path, unlocked), 'first one');
    expect((await readKey(path)).storage).toBe('sealed');
    await resealKey(path, await readPrivate(path, unlocked), null);
    const read = await readKey(path);
    expect(read).toMatchObject({ storage: 'plain', publicKey: key.publicKey });
    expect(isSignedBy(key.publicKey, await read.sign(message))).toBe(true);
  });
});

describe('OpenSSH keys', () => {
  const keygen = async (passphrase: string): Promise<{ file: string; publicKey: string }> => {
    await mkdir(home.path, { recursive: true });
    const file = join(home.path, `id-${passphrase.length}`);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-a', '1', '-N', passphrase, '-C', 'ada@home', '-f', file]);
    const line = readPublicLine(await readFile(`${file}.pub`, 'utf8'));
    expect(line?.comment).toBe('ada@home');
    return { file, publicKey: line!.key.toString('hex') };
  };

  test('uses an OpenSSH key in place', async () => {
    const { file, publicKey } = await keygen('');
    await useFile(path, file, { replace: false, now });
    expect(await readlink(path)).toBe(file);
    const read = await readKey(path);
    expect(read).toMatchObject({ publicKey, storage: 'plain' });
    expect(isSignedBy(publicKey, await read.sign(message))).toBe(true);
    await chmod(file, 0o644);
    await expect(readKey(path)).rejects.toMatchObject({ code: 'key_unusable' });
  });

  test('reads the public key without the passphrase, and asks for the passphrase to sign', async () => {
    const { file, publicKey } = await keygen('staple it');
    const read = await readKey(file, { answers: ['wrong one', 'staple it'] });
    expect(read).toMatchObject({ publicKey, storage: 'sealed' });
    expect(isSignedBy(publicKey, await read.sign(message))).toBe(true);
    await expect(
      readPrivate(file, { passphrases: createPassphrases({}, typing(null)), agentSocket: undefined }),
    ).rejects.toMatchObject({
      code: 'key_of_ssh',
    });
  });

  test('signs with a key in ssh-agent, and refuses a key that ssh-agent does not have', async () => {
    const { file, publicKey } = await keygen('');
    const socket = join(home.path, 'agent.sock');
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    try {
      await vi.waitFor(() => stat(socket), { interval: 5 });
      const env = { SSH_AUTH_SOCK: socket };
      await usePublicLine(path, readPublicLine(await readFile(`${file}.pub`, 'utf8'))!, { replace: false, now });
      const read = await readKey(path, { env });
      expect(read).toMatchObject({ publicKey, storage: 'agent' });
      await expect(read.sign(message)).rejects.toMatchObject({ code: 'ssh_agent_failed', exit: exits.signIn });
      execFileSync('ssh-add', ['-q', file], { env: { ...process.env, ...env }, stdio: 'ignore' });
      expect(await keysOfAgent(socket)).toEqual([{ key: Buffer.from(publicKey, 'hex'), comment: 'ada@home' }]);
      expect(isSignedBy(publicKey, await read.sign(message))).toBe(true);
      // ssh-agent has the key, so the program does not ask for the passphrase of the file.
      execFileSync('ssh-keygen', ['-q', '-p', '-a', '1', '-P', '', '-N', 'staple it', '-f', file]);
      const sealed = await readKey(file, { env });
      expect(isSignedBy(publicKey, await sealed.sign(message))).toBe(true);
    } finally {
      agent.kill();
    }
    const alone = await readKey(path);
    await expect(alone.sign(message)).rejects.toMatchObject({ code: 'ssh_agent_failed' });
    const keyWithoutAgent = await readKey(path, { env: { SSH_AUTH_SOCK: join(home.path, 'nobody') } });
    await expect(keyWithoutAgent.sign(message)).rejects.toMatchObject({ code: 'ssh_agent_failed' });
  });

  test.each(['', 'ssh-ed25519', 'ssh-ed25519 AAAA', 'ssh-rsa AAAAB3NzaC1yc2E= ada', 'hello'])(
    'refuses %j as a public key line',
    (text) => {
      expect(readPublicLine(text)).toBeNull();
    },
  );

  test('refuses a damaged OpenSSH key', async () => {
    const { file } = await keygen('');
    await writeFile(file, (await readFile(file, 'utf8')).replace(/\n[A-Za-z0-9+/]{10}/, '\nAAAAAAAAAA'));
    await expect(readKey(file)).rejects.toMatchObject({ code: 'key_unusable' });
  });
});
