import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { scratchDirectory } from '../../test/scratch.ts';
import { loadSecretKeys, SecretKeys } from './secret-keys.ts';

let directory = '';
beforeEach(() => {
  directory = scratchDirectory('muster-keys-');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const key = (byte: number) => Buffer.alloc(32, byte);
const hex = (byte: number) => key(byte).toString('hex');
const ids = (...bytes: number[]) => new SecretKeys(bytes.map(key)).ids;

/** Writes a file with the given mode. @returns its path */
function put(name: string, text: string, mode = 0o600): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const load = (more: Partial<Parameters<typeof loadSecretKeys>[0]> = {}) =>
  loadSecretKeys({ dataDir: directory, file: null, env: {}, hasSecrets: async () => false, ...more });

function credential(text: string): NodeJS.ProcessEnv {
  mkdirSync(join(directory, 'credentials'), { recursive: true });
  put('credentials/muster-secrets-key', text, 0o440);
  return { CREDENTIALS_DIRECTORY: join(directory, 'credentials') };
}

describe('key sources', () => {
  test('reads keys from the environment, the credential, the configured file, and the data directory, without duplicates', async () => {
    const env: NodeJS.ProcessEnv = {
      MUSTER_SECRETS_KEY: `${hex(1)},${hex(2)}`,
      ...credential(`${hex(3)}\n${hex(1)}\n`),
    };
    const file = put('given.key', `# mine\n${hex(4)}\n`);
    put('secrets.keys', `${hex(5)}\n`);
    const all = await load({ env, file });
    expect(all.ids).toEqual(ids(1, 2, 3, 4, 5));
    expect(all.active?.id).toBe(ids(1)[0]);
    expect((await load({ env: { ...env, MUSTER_SECRETS_KEY: undefined }, file })).ids).toEqual(ids(3, 1, 4, 5));
    expect((await load({ file })).ids).toEqual(ids(4, 5));
    expect((await load()).ids).toEqual(ids(5));
    // Ignores an empty variable, and a directory without this credential.
    rmSync(join(directory, 'credentials/muster-secrets-key'));
    expect((await load({ env: { ...env, MUSTER_SECRETS_KEY: '' } })).ids).toEqual(ids(5));
  });

  test('adds and removes only keys in the data directory’s file', async () => {
    put('secrets.keys', hex(5));
    expect((await load()).canAdd).toBe(true);
    const given = await load({ env: { MUSTER_SECRETS_KEY: hex(1) } });
    expect([given.canAdd, given.rotationCutOff]).toEqual([false, false]);
    await expect(given.add()).rejects.toThrow('not managed by this orchestrator');
    await given.retire(given.ids);
    expect(given.ids).toEqual(ids(1, 5));
    expect(readFileSync(join(directory, 'secrets.keys'), 'utf8')).toBe(hex(5));
  });

  test('creates a private key file if there is neither a key nor an encrypted value, and reads the file later', async () => {
    const made = await load();
    expect(made.ids).toHaveLength(1);
    expect(made.canAdd).toBe(true);
    expect(statSync(join(directory, 'secrets.keys')).mode & 0o777).toBe(0o600);
    expect((await load({ hasSecrets: async () => true })).ids).toEqual(made.ids);
    const other = scratchDirectory('muster-keys-');
    expect((await load({ dataDir: other })).ids).not.toEqual(made.ids);
    rmSync(other, { recursive: true });
  });

  test('creates no key if encrypted values exist', async () => {
    const none = await load({ hasSecrets: async () => true });
    expect([none.ids, none.active, none.canAdd]).toEqual([[], null, false]);
    expect(existsSync(join(directory, 'secrets.keys'))).toBe(false);
  });

  test('reads hexadecimal in either case, and base64 in either alphabet, with or without padding', async () => {
    const bytes = Buffer.from(Array.from({ length: 32 }, (_, i) => 251 - i));
    const same = new SecretKeys([bytes]).ids;
    const texts = [
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      bytes.toString('base64'),
      bytes.toString('base64url'),
      `  ${bytes.toString('base64')}\r\n`,
    ];
    for (const text of texts) expect((await load({ env: { MUSTER_SECRETS_KEY: text } })).ids).toEqual(same);
  });
});

describe('refused keys', () => {
  const secret = 'a9'.repeat(31);
  test.each<[string, string]>([
    ['too short', secret],
    ['too long', `${secret}a9a9`],
    ['not hexadecimal', `${secret}zz`],
    ['base64 of 31 bytes', Buffer.alloc(31, 0xa9).toString('base64')],
    ['nothing but a comment', '# none\n\n'],
    ['one good and one bad', `${hex(1)}\n${secret}`],
  ])('refuses %s as a key, and names the source but not the content in the error', async (_, text) => {
    for (const [more, location] of [
      [{ env: { MUSTER_SECRETS_KEY: text } }, 'the variable MUSTER_SECRETS_KEY'],
      [{ env: credential(text) }, 'the credential '],
      [{ file: put('given.key', text) }, join(directory, 'given.key')],
    ] as const) {
      const refusal = await load(more).catch((error: Error) => error.message);
      expect(refusal).toContain(location);
      expect(refusal).not.toContain('a9a9a9');
    }
    put('secrets.keys', text);
    await expect(load()).rejects.toThrow(join(directory, 'secrets.keys'));
    expect(readFileSync(join(directory, 'secrets.keys'), 'utf8')).toBe(text);
  });

  test('reports the line that contains an invalid key', async () => {
    await expect(load({ file: put('given.key', `# mine\n${hex(1)}\nx\n`) })).rejects.toThrow(
      'given.key, line 3: a secrets key',
    );
  });

  test('refuses a configured file that does not exist', async () => {
    await expect(load({ file: join(directory, 'given.key') })).rejects.toThrow('given.key does not exist');
  });

  test.each([0o644, 0o604, 0o660, 0o620, 0o602, 0o650])('refuses a configured file with mode %o', async (mode) => {
    await expect(load({ file: put('given.key', hex(1), mode) })).rejects.toThrow('gives other users access to keys');
  });

  test('accepts a key file that only its owner and group can read', async () => {
    for (const mode of [0o640, 0o440, 0o600, 0o400])
      expect((await load({ file: put(`given-${mode}.key`, hex(1), mode) })).ids).toEqual(ids(1));
  });

  test.each([0o640, 0o604, 0o644])('refuses the key file in the data directory if its mode is %o', async (mode) => {
    put('secrets.keys', hex(1), mode);
    await expect(load()).rejects.toThrow('chmod 0600');
    await expect(load({ env: { MUSTER_SECRETS_KEY: hex(2) } })).rejects.toThrow('chmod 0600');
  });
});

describe('key changes', () => {
  test('writes a new key to disk before it is used, and removes a retired key from disk', async () => {
    const keys = await load();
    const [former = ''] = keys.ids;
    await keys.add();
    expect(keys.ids).toEqual([keys.active?.id, former]);
    expect(keys.rotationCutOff).toBe(true);
    const again = await load();
    expect([again.ids, again.rotationCutOff]).toEqual([keys.ids, true]);
    await keys.retire([former, keys.active?.id ?? '']);
    expect(keys.ids).toEqual([keys.active?.id]);
    expect((await load()).ids).toEqual(keys.ids);
    expect(keys.rotationCutOff).toBe(false);
  });

  test('changes no key if the file cannot be written', async () => {
    const write = async () => {
      throw new Error('no space');
    };
    const keys = new SecretKeys([key(1)], { write });
    await expect(keys.add()).rejects.toThrow('no space');
    expect(keys.ids).toEqual(ids(1));
  });

  test('waits for earlier encryptions, even if they fail', async () => {
    const keys = new SecretKeys([key(1)]);
    let end = (_: Error | null) => {};
    const writing = keys.encrypting(() => new Promise<void>((done, fail) => (end = (e) => (e ? fail(e) : done()))));
    let settled = false;
    const waiting = keys.settled().then(() => {
      settled = true;
    });
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    end(new Error('refused'));
    await expect(writing).rejects.toThrow('refused');
    await waiting;
    expect(settled).toBe(true);
  });

  test('reveals no byte of a key when it is printed', () => {
    const keys = new SecretKeys([key(0xa9)]);
    const printed = JSON.stringify(keys) + JSON.stringify(keys.active) + keys.ids.join();
    expect(printed).not.toMatch(/a9a9a9|qampqam/);
  });
});
