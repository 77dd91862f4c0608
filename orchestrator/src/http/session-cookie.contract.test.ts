import { apiPrefix } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';

/** Tests which requests may use the cookie of a console session. Uses the real domain. */

const openApi = realApiFixture();

type Headers = Record<string, string>;

/** Headers of a write request from one of the console's pages. */
const page: Headers = { origin: 'http://muster.example', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };

describeAnyDatabase('the cookie of a console session', (fixture) => {
  const stores = samplesFixture(fixture);

  const open = async () => {
    const api = await openApi(fixture, await stores.open());
    const { app, domain, key } = api;
    const ask = (method: 'GET' | 'POST' | 'DELETE', path: string, headers: Headers) =>
      app.inject({ method, url: apiPrefix + path, headers: { host: 'muster.example', ...headers } });
    const exchange = async () => {
      const authorization = `Bearer ${await tokenOf(domain, key)}`;
      const answer = await ask('POST', '/auth/cookie', { ...page, authorization });
      expect(answer.statusCode).toBe(200);
      const set = String(answer.headers['set-cookie']);
      const cookie = set.split(';')[0] as string;
      return { set, cookie, pageKey: (answer.json() as { page_key: string }).page_key };
    };
    const session = await exchange();
    /** Headers of a request from one of the console's pages. */
    const own: Headers = {
      cookie: session.cookie,
      'muster-page-key': session.pageKey,
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'cors',
    };
    return { ...api, ask, exchange, ...session, own };
  };
  const without = (headers: Headers, name: string): Headers =>
    Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

  test('sets the cookie with the __Host- prefix, Secure, HttpOnly, and SameSite=Strict', async () => {
    const { app, set } = await open();
    expect(set).toMatch(/^__Host-muster-test=[\w-]{43}; Path=\/; Max-Age=604800; Secure; HttpOnly; SameSite=Strict$/);
    await app.close();
  });

  test('lets a browser that could not use the cookie keep its token', async () => {
    const { app, ask, domain, key } = await open();
    const authorization = `Bearer ${await tokenOf(domain, key)}`;
    for (const name of ['sec-fetch-site', 'origin']) {
      const answer = await ask('POST', '/auth/cookie', { ...without(page, name), authorization });
      expect([answer.statusCode, answer.json().code], name).toEqual([403, 'origin_refused']);
      expect(answer.headers['set-cookie'], name).toBeUndefined();
    }
    expect((await ask('GET', '/auth/session', { authorization })).statusCode).toBe(200);
    await app.close();
  });

  test('accepts the cookie only from the console’s own pages and only with the page key', async () => {
    const { app, ask, own, exchange } = await open();
    const origin = { origin: 'http://muster.example' };
    const statusOf = async (headers: Headers, method: 'GET' | 'POST' = 'GET') =>
      (await ask(method, method === 'GET' ? '/auth/session' : '/notifications/read-all', headers)).statusCode;
    expect(await statusOf(own)).toBe(200);
    expect(await statusOf({ ...own, ...origin }, 'POST')).toBe(204);
    // Neither half of the credential is enough on its own, and halves of different sessions do not match.
    const other = await exchange();
    for (const headers of [
      without(own, 'cookie'),
      without(own, 'muster-page-key'),
      { ...own, 'muster-page-key': other.pageKey },
      { ...own, cookie: other.cookie },
      { ...own, cookie: own.cookie?.replace('muster-test', 'muster-other') as string },
    ])
      expect(await statusOf(headers)).toBe(401);
    // A browser reports the site of the page and, for write requests, the origin.
    expect(await statusOf(without(own, 'sec-fetch-site'))).toBe(401);
    expect(await statusOf({ ...own, 'sec-fetch-site': 'none' })).toBe(401);
    expect(await statusOf(own, 'POST')).toBe(401);
    for (const site of ['cross-site', 'same-site'])
      expect(await statusOf({ ...own, ...origin, 'sec-fetch-site': site }, 'POST')).toBe(403);
    // Another port on the host is the same site but another origin.
    for (const evil of ['https://evil.example', 'http://muster.example:8080', 'null'])
      expect(await statusOf({ ...own, origin: evil }, 'POST')).toBe(403);
    await app.close();
  });

  test('ignores the cookie if there is an Authorization header, even an invalid one', async () => {
    const { app, ask, own, domain, key } = await open();
    const kinds = async (headers: Headers) => {
      const answer = await ask('GET', '/auth/sessions', headers);
      const sessions = answer.json() as { kind: string; current: boolean }[];
      return answer.statusCode === 200 ? sessions.find(({ current }) => current)?.kind : answer.statusCode;
    };
    expect(await kinds(own)).toBe('console');
    expect(await kinds({ ...own, authorization: `Bearer ${await tokenOf(domain, key)}` })).toBe('token');
    for (const authorization of ['', 'Bearer x', `Basic ${own['muster-page-key']}`])
      expect(await kinds({ ...own, authorization })).toBe(401);
    const cookie = own.cookie?.split('=')[1] ?? '';
    for (const token of [cookie, `${cookie}${own['muster-page-key']}`])
      expect(await kinds({ authorization: `Bearer ${token}` })).toBe(401);
    await app.close();
  });

  test('ignores the cookie on public routes', async () => {
    const { app, ask, own } = await open();
    const challenge = (headers: Headers) => ask('POST', '/auth/challenge', headers);
    const [with_, plain] = [
      await challenge({ ...own, origin: 'http://muster.example' }),
      await challenge({ 'sec-fetch-site': 'same-origin', origin: 'http://muster.example' }),
    ];
    expect([with_.statusCode, without(with_.json(), 'instance')]).toEqual([
      plain.statusCode,
      without(plain.json(), 'instance'),
    ]);
    await app.close();
  });

  test('deletes the cookie when the cookie’s session signs out, but not when another session signs out', async () => {
    const { app, ask, own, domain, key } = await open();
    const write = { ...own, ...page };
    const token = await tokenOf(domain, key);
    const elsewhere = await ask('POST', '/auth/logout', { ...write, authorization: `Bearer ${token}` });
    expect([elsewhere.statusCode, elsewhere.headers['set-cookie']]).toEqual([204, undefined]);
    expect((await ask('GET', '/auth/session', own)).statusCode).toBe(200);
    const out = await ask('POST', '/auth/logout', write);
    expect(out.statusCode).toBe(204);
    expect(out.headers['set-cookie']).toMatch(/^__Host-muster-test=; Path=\/; Max-Age=0; Secure;/);
    expect((await ask('GET', '/auth/session', own)).statusCode).toBe(401);
    await app.close();
  });

  test('refuses to exchange the cookie for a token', async () => {
    const { app, ask, own } = await open();
    for (const path of ['/auth/renew', '/auth/web-login', '/auth/cookie'])
      expect((await ask('POST', path, { ...own, origin: 'http://muster.example' })).json()).toMatchObject({
        code: 'session_token_required',
      });
    await app.close();
  });
});
