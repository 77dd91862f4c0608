import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError, type Client, createClient } from '@muster/protocol/client';
import { getStatus, listModules } from '@muster/protocol/http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Standing, standIn } from '../../test/orchestrator.ts';
import { makeHome } from '../../test/process.ts';
import { makeKey } from '../keys/make-key.ts';
import { openTransport } from './client.ts';
import { judgeToken, openSession, tokenFile } from './session.ts';

const token = { token: 't', issued_at: 1000, expires_at: 4600 };

test.each([
  [null, 1000, 'sign_in'],
  [token, 1000, 'use'],
  [token, 3700, 'use'],
  [token, 3701, 'renew'],
  [token, 4569, 'renew'],
  [token, 4570, 'sign_in'],
  [token, 9999, 'sign_in'],
  [{ ...token, issued_at: 4601 }, 4000, 'use'],
] as const)('chooses what to do with the token %o at time %i: %s', (stored, now, verdict) => {
  expect(judgeToken(stored, now)).toBe(verdict);
});

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let close: () => void;
beforeEach(async () => {
  home = await makeHome();
  server = await standIn();
});
afterEach(async () => {
  close?.();
  await server.close();
  await home.remove();
});

async function session(now: () => number) {
  const path = join(home.path, 'key');
  const { key } = await makeKey(path, { replace: true, now });
  const opened = openTransport({ policy: { kind: 'anything' }, firstUse: async () => {} });
  close = opened.close;
  const client = (stored: string | null): Client =>
    createClient({ url: server.url, transport: opened.transport, token: async () => stored });
  return {
    client,
    key,
    servers: () => opened.serversOf(new URL(server.url)),
    open: (servers = () => opened.serversOf(new URL(server.url)), signer = key) =>
      openSession({
        key: async () => signer,
        store: (k) => tokenFile(home.env, server.url, k.operatorId, () => 'anything'),
        client,
        servers,
        now,
      }),
  };
}

const routes = () => server.seen.map(({ route }) => route.id);

test('reuses one sign-in until a quarter of its lifetime is left', async () => {
  let now = Date.now() / 1000;
  const { open, client } = await session(() => now);
  const got = await open().token();
  await client(got)(listModules, {});
  expect(await open().token()).toBe(got);
  expect(routes()).toEqual(['challenge', 'verify', 'listModules']);
  now += 3000;
  const renewed = await open().token();
  expect(renewed).not.toBe(got);
  expect(routes().at(-1)).toBe('renew');
  now += 4000;
  await open().token();
  expect(routes().slice(-2)).toEqual(['challenge', 'verify']);
});

test('signs in again if the token can no longer be renewed', async () => {
  let now = Date.now() / 1000;
  const { open } = await session(() => now);
  await open().token();
  server.forgetSessions();
  now += 3000;
  await open().token();
  expect(routes()).toEqual(['challenge', 'verify', 'renew', 'challenge', 'verify']);
});

test('shares one sign-in among concurrent calls', async () => {
  const { open } = await session(() => Date.now() / 1000);
  const opened = open();
  const [first, ...others] = await Promise.all([opened.token(), opened.token(), opened.token()]);
  expect(others).toEqual([first, first]);
  expect(routes()).toEqual(['challenge', 'verify']);
});

test('stores the token in a file that only its owner can read', async () => {
  const { open } = await session(() => Date.now() / 1000);
  const opened = open();
  await opened.token();
  const folder = join(home.path, 'cache', 'muster', 'sessions');
  const [file = ''] = await readdir(folder);
  expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await opened.forget();
  expect(await readdir(folder)).toEqual([]);
});

test('reports a wrong signature', async () => {
  const { client, servers } = await session(() => Date.now() / 1000);
  await client(null)(getStatus, {});
  const { key } = await makeKey(join(home.path, 'other'), { replace: false, now: () => 0 });
  const lying = { ...key, sign: async () => new Uint8Array(64) };
  const opened = openSession({
    key: async () => lying,
    store: () => tokenFile(home.env, server.url, 'x', () => 'anything'),
    client,
    servers,
    now: () => 0,
  });
  await expect(opened.token()).rejects.toBeInstanceOf(ApiError);
  await chmod(join(home.path, 'other'), 0o600);
});

test.each([
  ['answers with the bare form', { body: { nonce: 'ab'.repeat(32) } }],
  [
    'refuses the field, as earlier releases do',
    {
      code: 'invalid_input',
      detail: 'form is not known here',
      errors: [{ path: '/form', message: 'is not a field of this' }],
    },
  ],
] as const)('signs nothing for a server that %s', async (_, answer) => {
  await server.close();
  server = await standIn({ answers: { challenge: () => answer as never } });
  const { open, key } = await session(() => Date.now() / 1000);
  const signed: Uint8Array[] = [];
  const watched = {
    ...key,
    sign: (message: Uint8Array) => {
      signed.push(message);
      return key.sign(message);
    },
  };
  await expect(open(undefined, watched).token()).rejects.toMatchObject({ code: 'sign_in_not_offered' });
  expect(signed).toEqual([]);
  expect(routes()).toEqual(['challenge']);
});

test('signs in with the server’s second name if the server does not recognize the first one', async () => {
  const named: unknown[] = [];
  await server.close();
  server = await standIn({
    answers: {
      verify: ({ body }) => {
        named.push((body as { server: string }).server);
        return named.length === 1 ? { code: 'sign_in_server_unknown', detail: 'not by that name' } : undefined;
      },
    },
  });
  const { open } = await session(() => Date.now() / 1000);
  const names = [`tls:${'ab'.repeat(32)}`, 'origin:https://muster.example:4748'];
  await open(() => names).token();
  expect(named).toEqual(names);
});
