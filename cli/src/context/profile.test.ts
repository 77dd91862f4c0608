import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeHome } from '../../test/process.ts';
import { configDirectory } from '../directories.ts';
import {
  chooseTarget,
  createProfile,
  defaultUrl,
  type Profiles,
  parseUrl,
  profilesPath,
  readProfiles,
  trustServer,
} from './profile.ts';

const print = '0f'.repeat(32);
const now = () => 1_795_000_000;
let home: Awaited<ReturnType<typeof makeHome>>;
beforeEach(async () => {
  home = await makeHome();
});
afterEach(() => home.remove());

const profiles: Profiles = {
  version: 1,
  current: 'prod',
  profiles: {
    prod: { url: 'https://prod.example:4748', key_file: '/keys/prod' },
    lab: { url: 'https://lab.example:4748', key_file: null },
  },
  servers: { 'https://prod.example:4748': { fingerprint: print, trusted_at: '' } },
};
const env = { HOME: '/home/ada', XDG_CONFIG_HOME: '/home/ada/cfg' };

test('chooses the current profile by default', () => {
  expect(chooseTarget({}, env, profiles)).toEqual({
    url: 'https://prod.example:4748',
    keyFile: '/keys/prod',
    profile: 'prod',
    given: null,
    givenBy: 'MUSTER_FINGERPRINT',
    stored: print,
    insecure: false,
  });
});

test('chooses the local orchestrator and the default key if there are no profiles', () => {
  const none = { version: 1, current: null, profiles: {}, servers: {} } as const;
  expect(chooseTarget({}, env, none)).toMatchObject({ url: defaultUrl, keyFile: '/home/ada/cfg/muster/operator.key' });
});

test('prefers flags to variables, and variables to the profile', () => {
  const variables = { ...env, MUSTER_URL: 'https://b.example', MUSTER_KEY_FILE: '/keys/b', MUSTER_PROFILE: 'lab' };
  expect(chooseTarget({}, variables, profiles)).toMatchObject({
    url: 'https://b.example',
    keyFile: '/keys/b',
    profile: 'lab',
  });
  expect(chooseTarget({ url: 'https://c.example', keyFile: '/keys/c' }, variables, profiles)).toMatchObject({
    url: 'https://c.example',
    keyFile: '/keys/c',
  });
  expect(chooseTarget({ profile: 'prod' }, { ...env, MUSTER_PROFILE: 'lab' }, profiles)).toMatchObject({
    url: 'https://prod.example:4748',
  });
});

test('suggests the nearest name for a profile that does not exist', () => {
  expect(() => chooseTarget({ profile: 'prdo' }, env, profiles)).toThrow(
    expect.objectContaining({ remedy: expect.stringContaining('Did you mean prod?') }),
  );
});

test('does not use the key of the current profile with an explicit address', () => {
  expect(chooseTarget({ url: 'https://other.example' }, env, profiles)).toMatchObject({
    keyFile: '/home/ada/cfg/muster/operator.key',
    profile: null,
    stored: null,
  });
});

test('pins a certificate for its address rather than for the profile', () => {
  expect(chooseTarget({ url: 'https://prod.example:4748/' }, env, profiles).stored).toBe(print);
});

test.each([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
  ['', false],
])('MUSTER_INSECURE_SKIP_VERIFY=%s sets insecure to %s', (value, insecure) => {
  expect(chooseTarget({}, { ...env, MUSTER_INSECURE_SKIP_VERIFY: value }, profiles).insecure).toBe(insecure);
});

test('refuses a value of the skip-verify variable that is not a boolean', () => {
  expect(() => chooseTarget({}, { ...env, MUSTER_INSECURE_SKIP_VERIFY: 'maybe' }, profiles)).toThrow('maybe');
});

test.each(['profile: nowhere', 'profile: __proto__', 'profile: constructor'])(
  'refuses the unknown %s',
  async (text) => {
    const name = text.slice('profile: '.length);
    expect(() =>
      chooseTarget({ profile: name }, home.env, {
        ...profiles,
        profiles: Object.assign(Object.create(null), profiles.profiles),
      }),
    ).toThrow(name);
  },
);

test.each([
  ['orchestrator.example:4748', 'https://orchestrator.example:4748'],
  ['https://a.example/', 'https://a.example'],
  ['https://a.example/muster/', 'https://a.example/muster'],
  ['http://127.0.0.1:80', 'http://127.0.0.1'],
])('parseUrl reads %s as %s', (text, url) => {
  expect(parseUrl(text)).toBe(url);
});

test.each(['ftp://a.example', 'https://ada:pw@a.example', 'https://a.example/?x=1', 'https://'])(
  'parseUrl refuses %s',
  (text) => {
    expect(() => parseUrl(text)).toThrow(/address/);
  },
);

test('reads back the profiles that it wrote to the private file', async () => {
  await createProfile(home.env, { name: 'local', url: 'https://127.0.0.1:4748', fingerprint: `SHA256:${print}` }, now);
  await createProfile(home.env, { name: 'prod', url: 'prod.example', keyFile: '/keys/prod' }, now);
  const read = await readProfiles(home.env);
  expect(read.current).toBe('local');
  expect({ ...read.profiles }).toEqual({
    local: { url: 'https://127.0.0.1:4748', key_file: null },
    prod: { url: 'https://prod.example', key_file: '/keys/prod' },
  });
  expect(read.servers['https://127.0.0.1:4748']?.fingerprint).toBe(print);
  expect((await stat(profilesPath(home.env))).mode & 0o777).toBe(0o600);
  expect((await stat(configDirectory(home.env))).mode & 0o777).toBe(0o700);
});

test('replaces a profile and its certificate only on request', async () => {
  const local = { name: 'local', url: 'https://127.0.0.1:4748', fingerprint: print };
  await createProfile(home.env, local, now);
  await expect(createProfile(home.env, local, now)).rejects.toThrow('already');
  await createProfile(home.env, { ...local, fingerprint: '1e'.repeat(32), replace: true }, now);
  expect((await readProfiles(home.env)).servers['https://127.0.0.1:4748']?.fingerprint).toBe('1e'.repeat(32));
});

test('adds a trusted certificate and keeps the others', async () => {
  await trustServer(home.env, 'https://a.example/', print, now);
  await trustServer(home.env, 'https://b.example:1/path', print, now);
  expect(Object.keys((await readProfiles(home.env)).servers)).toEqual(['https://a.example', 'https://b.example:1']);
});

test.each([
  'not JSON',
  '[]',
  '{"version":2,"current":null,"profiles":{},"servers":{}}',
  '{"version":1,"profiles":{"a":{}},"servers":{}}',
  '{"version":1,"profiles":{},"servers":{"https://a.example":{"fingerprint":"none"}}}',
])('refuses a malformed profiles file and names its path in the error; content: %s', async (text) => {
  const path = profilesPath(home.env);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  await expect(readProfiles(home.env)).rejects.toThrow(path);
  await expect(trustServer(home.env, 'https://a.example', print, now)).rejects.toThrow(path);
  expect(await readFile(path, 'utf8')).toBe(text);
});

test('uses XDG directories only if they are absolute', () => {
  expect(configDirectory({ HOME: '/home/ada', XDG_CONFIG_HOME: 'here' })).toBe(join('/home/ada', '.config', 'muster'));
});
