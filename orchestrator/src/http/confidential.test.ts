import { routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { testApp, tokens } from '../../test/app-fixture.ts';
import type { AppOptions } from './app.ts';

const secret = { name: 'x', value: 'hunter2' };
const elsewhere = '192.0.2.7';

interface Sender {
  /** The client's IP address. */
  from?: string;
  headers?: Record<string, string>;
  options?: Partial<AppOptions>;
}

async function post({ from = '127.0.0.1', headers = {}, options = {} }: Sender, payload: string | object = secret) {
  const app = testApp({}, options);
  try {
    const answer = await app.inject({
      method: 'POST',
      url: '/api/v1/secrets',
      remoteAddress: from,
      headers: { authorization: `Bearer ${tokens.operator}`, 'content-type': 'application/json', ...headers },
      payload,
    });
    return [answer.statusCode, answer.json().code];
  } finally {
    await app.close();
  }
}

const taken = [201, undefined];
const refused = [403, 'plaintext_refused'];
const overTls = (client: string) => ({ 'x-forwarded-for': client, 'x-forwarded-proto': 'https' });
const trusting = { trustedProxies: ['10.0.0.1'] };

test.each<[string, Sender, unknown]>([
  ['this machine', {}, taken],
  ['this machine by IPv6', { from: '::1' }, taken],
  ['this machine by IPv4 in IPv6', { from: '::ffff:127.0.0.1' }, taken],
  ['another machine', { from: elsewhere }, refused],
  ['another machine by IPv6', { from: '2001:db8::1' }, refused],
  ['another machine that says it came over TLS', { from: elsewhere, headers: overTls('127.0.0.1') }, refused],
  ['a proxy that is not trusted', { from: '10.0.0.2', headers: overTls(elsewhere), options: trusting }, refused],
  ['a trusted proxy over TLS', { from: '10.0.0.1', headers: overTls(elsewhere), options: trusting }, taken],
  [
    'a trusted proxy over plain HTTP',
    { from: '10.0.0.1', headers: { 'x-forwarded-for': elsewhere, 'x-forwarded-proto': 'http' }, options: trusting },
    refused,
  ],
  [
    'a trusted proxy whose client claims to be this machine',
    { from: '10.0.0.1', headers: { 'x-forwarded-for': '127.0.0.1' }, options: trusting },
    refused,
  ],
  [
    'a trusted proxy here, for another machine over plain HTTP',
    { headers: { 'x-forwarded-for': elsewhere }, options: { trustedProxies: ['127.0.0.1'] } },
    refused,
  ],
  ['a proxy that is said to speak TLS', { from: elsewhere, options: { trustProxyTls: true } }, taken],
])('accepts or refuses a secret over plain HTTP from %s', async (_, sender, answer) => {
  expect(await post(sender)).toEqual(answer);
});

test('refuses secrets over plain HTTP after the permission check and before reading the body', async () => {
  expect(await post({ from: elsewhere }, '{"broken')).toEqual(refused);
  expect(await post({ from: elsewhere, headers: { authorization: 'Bearer nobody' } })).toEqual([
    401,
    'unauthenticated',
  ]);
});

test('refuses plain HTTP on exactly the routes that accept a secret', () => {
  const confidential = routes.filter((route) => 'confidential' in route && route.confidential === true);
  expect(confidential.map(({ id }) => id).sort()).toEqual(['createSecret', 'updateSecret']);
});
