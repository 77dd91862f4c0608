import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { lockDirectory } from '../../../lib/src/instance-lock.ts';
import { scratchDirectory } from '../../test/scratch.ts';
import { loadApiCertificate } from '../identity/api-certificate.ts';
import { loadIdentity } from '../identity/identity.ts';
import { beginRestore, completeRestore, markDatabase } from './restore-place.ts';
import { runOffline } from './run.ts';
import { KeysRefused, parseSharedKeys, planJoin, sharedKeysOf } from './shared-keys.ts';

const above = scratchDirectory('muster-share-');
afterAll(() => rmSync(above, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

let place = '';
let count = 0;
const at = (...names: string[]) => join(place, ...names);
let recipient = '';
const names = ['identity.key', 'api.key', 'api.crt', 'secrets.keys'];
const secrets = `${'ab'.repeat(32)}\n`;

beforeEach(async () => {
  place = join(above, String(++count));
  mkdirSync(place);
  const identity = await generateX25519Identity();
  recipient = await identityToRecipient(identity);
  writeFileSync(at('age.key'), `${identity}\n`, { mode: 0o600 });
  await createKeys('from');
  mkdirSync(at('to'), { mode: 0o700 });
});

async function createKeys(name: string): Promise<void> {
  await loadIdentity(at(name));
  await loadApiCertificate(at(name), null);
  writeFileSync(at(name, 'secrets.keys'), secrets, { mode: 0o600 });
}

/** Runs an offline command. @returns the exit code, and the output */
async function run(command: 'share' | 'join', dataDir: string, ...more: string[]) {
  const said: string[] = [];
  for (const stream of [process.stderr, process.stdout])
    vi.spyOn(stream, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const args = ['--data-dir', at(dataDir), ...more, at('keys.age')];
  const exit = await runOffline(`orchestrator ${command}`, args, '/nonexistent');
  vi.restoreAllMocks();
  return { exit, said: said.join('') };
}
const share = () => run('share', 'from', '--recipient', recipient);
const joinFleet = (...more: string[]) => run('join', 'to', '--identity', at('age.key'), ...more);
const content = (directory: string) => readdirSync(at(directory)).sort();

async function encrypted(text: string): Promise<void> {
  const encrypter = new Encrypter();
  encrypter.addRecipient(recipient);
  writeFileSync(at('keys.age'), await encrypter.encrypt(text));
}

describe('muster orchestrator share and join', () => {
  test('installs the shared keys in an empty data directory, and changes nothing when run again', async () => {
    expect(await share()).toMatchObject({ exit: 0 });
    expect(statSync(at('keys.age')).mode & 0o777).toBe(0o600);
    const file = readFileSync(at('keys.age'), 'latin1');
    expect(file).toMatch(/^age-encryption\.org\/v1\n/);
    expect(file).not.toContain('PRIVATE KEY');
    expect(await joinFleet()).toMatchObject({ exit: 0 });
    expect(content('to')).toEqual(names.toSorted());
    for (const name of names) {
      expect(readFileSync(at('to', name), 'utf8')).toBe(readFileSync(at('from', name), 'utf8'));
      expect(statSync(at('to', name)).mode & 0o777).toBe(0o600);
    }
    // A replica renews the certificate for its own host, with the same key.
    writeFileSync(at('to', 'api.crt'), 'renewed');
    const again = await joinFleet();
    expect(again).toMatchObject({ exit: 0 });
    expect(again.said).toContain('already has these keys; nothing was changed');
    expect(readFileSync(at('to', 'api.crt'), 'utf8')).toBe('renewed');
  });

  test('never prints a key', async () => {
    const said = [await share(), await joinFleet()];
    rmSync(at('keys.age'));
    said.push(await run('share', 'to', '--recipient', recipient, '--json'));
    const text = said.map((each) => each.said).join('');
    expect(said.map(({ exit }) => exit)).toEqual([0, 0, 0]);
    expect(text).not.toContain(secrets.trim());
    expect(text).not.toContain(readFileSync(at('from', 'identity.key'), 'utf8').split('\n')[1]);
  });

  test.each([
    ['a file', () => writeFileSync(at('keys.age'), 'other')],
    ['a key in the data directory', () => symlinkSync(at('from', 'identity.key'), at('keys.age'))],
    ['a link to nothing', () => symlinkSync(at('nothing'), at('keys.age'))],
  ])('shares no keys if the target is %s', async (_, make) => {
    const before = readFileSync(at('from', 'identity.key'), 'utf8');
    make();
    const refused = await share();
    expect(refused).toMatchObject({ exit: 1, said: expect.stringContaining('keys.age exists: remove it') });
    expect(readFileSync(at('from', 'identity.key'), 'utf8')).toBe(before);
    expect(content('.')).not.toContain('nothing');
  });

  test('shares no keys while a restore is unfinished', async () => {
    await beginRestore(at('from'));
    const refused = await share();
    expect(refused).toMatchObject({ exit: 1, said: expect.stringContaining('is in progress or was interrupted') });
    expect(content('.')).not.toContain('keys.age');
    expect(content('from').filter((name) => name.startsWith('orchestrator-lock'))).toEqual([]);
  });

  test('shares no keys if a restore ends while it reads them', async () => {
    const unlock = await lockDirectory(at('from'), 'orchestrator');
    await beginRestore(at('from'));
    rmSync(at('from', 'secrets.keys'));
    execFileSync('mkfifo', ['-m', '600', at('from', 'secrets.keys')]);
    // Ends the restore after the other keys have been read.
    const end = `exec 3>from/secrets.keys; rm -r from/.restoring; echo ${'cd'.repeat(32)} >&3`;
    const restore = spawn('sh', ['-c', end], { cwd: at(), stdio: 'ignore' });
    const refused = await share();
    restore.kill();
    unlock();
    expect(refused).toMatchObject({ exit: 1, said: expect.stringContaining('is in progress or was interrupted') });
    expect(content('.')).not.toContain('keys.age');
  });

  test('shares keys while the orchestrator runs', async () => {
    const unlock = await lockDirectory(at('from'), 'orchestrator');
    expect(await share()).toMatchObject({ exit: 0 });
    unlock();
  });

  test('refuses files with a passphrase or an identity that other users can read', async () => {
    writeFileSync(at('passphrase'), 'correct horse battery\n', { mode: 0o600 });
    const byPassphrase = ['--passphrase-file', at('passphrase')];
    for (const mode of [0o644, 0o620]) {
      chmodSync(at('passphrase'), mode);
      expect((await run('share', 'from', ...byPassphrase)).said).toContain('gives other users access to keys');
    }
    expect(content('.')).not.toContain('keys.age');
    chmodSync(at('passphrase'), 0o640);
    expect(await run('share', 'from', ...byPassphrase)).toMatchObject({ exit: 0 });
    chmodSync(at('passphrase'), 0o604);
    expect((await run('join', 'to', ...byPassphrase)).said).toContain('gives other users access to keys');
    rmSync(at('keys.age'));
    await share();
    chmodSync(at('age.key'), 0o644);
    expect((await joinFleet()).said).toContain('gives other users access to keys');
    expect(content('to')).toEqual([]);
  });

  test('reads the passphrase from a file, and refuses a wrong or short passphrase', async () => {
    const passphrase = (text: string) => {
      writeFileSync(at('passphrase'), `${text}\n`, { mode: 0o600 });
      return ['--passphrase-file', at('passphrase')];
    };
    expect(await run('share', 'from', ...passphrase('short'))).toMatchObject({ exit: 1 });
    expect(content('.')).not.toContain('keys.age');
    expect(await run('share', 'from', ...passphrase('correct horse battery'))).toMatchObject({ exit: 0 });
    const wrong = await run('join', 'to', ...passphrase('wrong horse battery'));
    expect(wrong).toMatchObject({ exit: 1, said: expect.stringContaining('wrong passphrase or identity') });
    expect(content('to')).toEqual([]);
    expect(await run('join', 'to', ...passphrase('correct horse battery'))).toMatchObject({ exit: 0 });
    expect(content('to')).toEqual(names.toSorted());
  });

  test('refuses a directory with other keys or other content, unless --force moves it aside', async () => {
    await share();
    writeFileSync(at('to', 'muster.db'), 'old');
    expect((await joinFleet()).said).toContain('is not empty (muster.db); nothing was changed');
    await createKeys('to');
    const former = readFileSync(at('to', 'identity.key'), 'utf8');
    const refused = await joinFleet();
    expect(refused).toMatchObject({ exit: 1 });
    expect(refused.said).toContain('has other keys (identity.key, api.key); nothing was changed');
    expect(readFileSync(at('to', 'identity.key'), 'utf8')).toBe(former);
    expect(await joinFleet('--force')).toMatchObject({ exit: 0 });
    const [aside = ''] = content('to').filter((name) => name.startsWith('before-restore-'));
    expect(readFileSync(at('to', aside, 'identity.key'), 'utf8')).toBe(former);
    expect(readFileSync(at('to', aside, 'muster.db'), 'utf8')).toBe('old');
    expect(content('to')).toEqual([...names, aside].toSorted());
  });

  test('installs all keys after a killed process has installed some, but refuses an unfinished restore', async () => {
    await share();
    const killed = await beginRestore(at('to'));
    writeFileSync(join(killed.content, 'api.key'), 'half');
    expect(await joinFleet()).toMatchObject({ exit: 0 });
    expect(content('to')).toEqual(names.toSorted());
    rmSync(at('to'), { recursive: true });
    mkdirSync(at('to'), { mode: 0o700 });
    await beginRestore(at('to'));
    await markDatabase(at('to'), null);
    const refused = await joinFleet();
    expect(refused).toMatchObject({ exit: 1, said: expect.stringContaining('run `muster restore` again') });
    expect(content('to')).toEqual(['.restoring']);
  });

  test('keeps the content of an interrupted restore that it cannot finish', async () => {
    await share();
    const killed = await beginRestore(at('to'));
    writeFileSync(join(killed.content, 'muster.db'), 'new');
    // A directory in place of the file makes the move fail.
    mkdirSync(at('to', 'muster.db', 'x'), { recursive: true });
    await expect(completeRestore(at('to'), null)).rejects.toThrow(/EISDIR|ENOTDIR|ENOTEMPTY/);
    for (const more of [[], ['--force']]) expect(await joinFleet(...more)).toMatchObject({ exit: 1 });
    expect(readFileSync(join(killed.content, 'muster.db'), 'utf8')).toBe('new');
    rmSync(at('to', 'muster.db'), { recursive: true });
    expect((await joinFleet()).said).toContain('is not empty (muster.db)');
    expect(readFileSync(at('to', 'muster.db'), 'utf8')).toBe('new');
  });

  test('refuses files that are damaged, too large, or written by other programs', async () => {
    writeFileSync(at('keys.age'), 'not a file of muster');
    expect(await joinFleet()).toMatchObject({ exit: 1, said: expect.stringContaining('was not written by muster') });
    writeFileSync(at('keys.age'), Buffer.alloc(2 ** 20 + 1));
    expect((await joinFleet()).said).toContain('too large');
    rmSync(at('keys.age'));
    await share();
    const bytes = readFileSync(at('keys.age'));
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    writeFileSync(at('keys.age'), bytes);
    expect((await joinFleet()).said).toContain('is damaged');
    await encrypted(' '.repeat(2 ** 20 + 1));
    expect((await joinFleet()).said).toContain('too large');
    await encrypted('{"muster_share":2}');
    expect((await joinFleet()).said).toContain('the file has format 2, but this release reads format 1');
    expect(content('to')).toEqual([]);
  });

  test('refuses to share keys that are incomplete or that other users can read', async () => {
    chmodSync(at('from', 'identity.key'), 0o644);
    expect((await share()).said).toContain('gives other users access to keys');
    chmodSync(at('from', 'identity.key'), 0o600);
    rmSync(at('from', 'api.crt'));
    expect((await share()).said).toContain('has only one of api.key and api.crt');
    rmSync(at('from', 'identity.key'));
    expect((await share()).said).toContain('has no identity.key');
    expect(content('.')).not.toContain('keys.age');
  });
});

describe('shared keys', () => {
  const valid = () => sharedKeysOf(at('from'), { now: 0, version: '1.0.0' });

  test.each([
    ['another identity', (keys: ReturnType<typeof valid>) => ({ ...keys, public_key: 'ab'.repeat(32) }), 'is damaged'],
    ['an unknown file', (keys) => ({ ...keys, files: { ...keys.files, '../x': 'y' } }), 'invalid at files'],
    [
      'an invalid secrets key',
      (keys) => ({ ...keys, files: { ...keys.files, 'secrets.keys': 'abc' } }),
      'secrets.keys in the file is invalid',
    ],
    [
      'an invalid certificate',
      (keys) => ({ ...keys, files: { ...keys.files, 'api.crt': 'abc' } }),
      'api.crt in the file is invalid',
    ],
    ['no object', () => null, 'was not written by muster'],
  ] satisfies [string, (keys: ReturnType<typeof valid>) => unknown, string][])(
    'refuses shared keys with %s',
    (_, change, message) => {
      const parse = () => parseSharedKeys(JSON.stringify(change(valid())));
      expect(parse).toThrow(KeysRefused);
      expect(parse).toThrow(message);
    },
  );

  test('replaces existing keys or content only with --force', () => {
    const { files } = valid();
    const plan = (found: object, content: readonly string[], force = false) =>
      planJoin(files, { found, content, where: '/data', force });
    expect(plan({}, [])).toEqual({ action: 'install', isOccupied: false });
    expect(plan(files, [...names, 'muster.db'])).toEqual({ action: 'nothing' });
    expect(plan({ ...files, 'api.crt': 'renewed' }, names)).toEqual({ action: 'nothing' });
    expect(plan(files, names, true)).toEqual({ action: 'nothing' });
    expect(() => plan({ 'api.key': 'other' }, ['api.key'])).toThrow('has other keys (api.key)');
    expect(() => plan({}, ['a', 'b', 'c', 'd'])).toThrow('is not empty (a, b, c, …)');
    expect(plan({ 'api.key': 'other' }, ['api.key'], true)).toEqual({ action: 'install', isOccupied: true });
  });

  test('names the keys that only the directory or only the file has', () => {
    const { files } = valid();
    const { 'secrets.keys': _, ...fewer } = files;
    const plan = (shared: typeof fewer, found: object, force = false) =>
      planJoin(shared, { found, content: Object.keys(found), where: '/data', force });
    expect(() => plan(fewer, files)).toThrow('/data has keys that the file lacks (secrets.keys); nothing was changed');
    expect(() => plan(files, fewer)).toThrow('/data lacks keys of the file (secrets.keys); nothing was changed');
    expect(() => plan(fewer, { ...files, 'identity.key': 'other' })).toThrow(
      '/data has other keys (identity.key) and has keys that the file lacks (secrets.keys);',
    );
    expect(plan(fewer, files, true)).toEqual({ action: 'install', isOccupied: true });
  });
});
