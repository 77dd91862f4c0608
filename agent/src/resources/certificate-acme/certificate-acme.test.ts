import 'reflect-metadata';
import { createPublicKey, webcrypto } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseModule, type ResolvedResource } from '@muster/protocol/module';
import * as x509 from '@peculiar/x509';
import { afterEach, expect, test } from 'vitest';
import type { Clock } from '../../../../lib/src/clock.ts';
import { acmeCertificate } from '../../converge/test/desired.ts';
import type { Machine } from '../provider/provider.ts';
import { certificateAcme } from './certificate-acme.ts';
import { newPrivateKey, signingRequest, typeOfKey } from './csr.ts';
import { issue } from './issue.ts';

test.each(['ecdsa-p256', 'ecdsa-p384', 'rsa-2048'] as const)(
  'creates a signing request with a %s key that other programs can read and verify',
  async (type) => {
    const key = newPrivateKey(type);
    expect(typeOfKey(key)).toBe(type);
    const domains = ['a.example.org', '*.b.example.org', `${'c'.repeat(60)}.example.org`];
    const request = new x509.Pkcs10CertificateRequest(signingRequest(domains, key, createPublicKey(key)));
    expect(await request.verify(webcrypto as never)).toBe(true);
    const { rawData } = request.getExtension('2.5.29.17') as x509.Extension;
    const names = new x509.SubjectAlternativeNameExtension(rawData).names.items.map(({ value }) => value);
    expect(names).toEqual(domains);
  },
);

/** A hostile authority, which sends the test's responses over real HTTP. */
let server: Server | null = null;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

type Answer = (
  request: IncomingMessage,
  body: string,
  origin: string,
) => { status?: number; body?: unknown; headers?: Record<string, string> };

async function failureWith(answer: Answer, clock: Clock = hurried): Promise<string> {
  const began = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let body = '';
    for await (const piece of request) body += piece;
    const origin = `http://127.0.0.1:${(began.address() as AddressInfo).port}`;
    const urls = { newNonce: `${origin}/nonce`, newAccount: `${origin}/account`, newOrder: `${origin}/order` };
    const usual =
      request.url === '/dir'
        ? { body: urls }
        : request.url === '/account'
          ? { headers: { location: `${origin}/me` }, status: 201 }
          : {};
    const { status = 200, body: text = {}, headers = {} } = { ...usual, ...answer(request, body, origin) };
    response.writeHead(status, { 'replay-nonce': 'n0nce', ...headers });
    response.end(typeof text === 'string' ? text : JSON.stringify(text));
  });
  server = began;
  await new Promise<void>((resolve) => began.listen(0, '127.0.0.1', resolve));
  const directory = `http://127.0.0.1:${(began.address() as AddressInfo).port}/dir`;
  const files = new Map<string, string>();
  const machine = {
    ...{ clock, environment: {}, stop: new AbortController().signal, cancelled: () => false, warn() {} },
    privateFiles: {
      read: (name: string) => files.get(name) ?? null,
      write: (name: string, content: string) => void files.set(name, content),
      remove: (name: string) => void files.delete(name),
    },
  } as unknown as Machine;
  const resource = acmeCertificate('/none', { directory, webroot: '/none' }) as ResolvedResource<'certificate-acme'>;
  try {
    await issue(resource, machine);
  } catch (error) {
    return (error as Error).message.replaceAll(/127\.0\.0\.1:\d+/g, 'CA');
  }
  return 'no failure';
}

let pauses: number[] = [];
/** A clock whose pauses end immediately. The 60-second timeouts of requests never expire. */
let passed = 0;
const hurried: Clock = {
  now: () => Date.now(),
  monotonic: () => passed,
  after(ms, action) {
    if (ms === 60_000) return () => {};
    pauses.push(ms);
    passed += ms;
    setImmediate(action);
    return () => {};
  },
};
const problem = (type: string, detail: string) => ({ type: `urn:ietf:params:acme:error:${type}`, detail });

test('reports the reason for a refusal, truncated and without control characters', async () => {
  const detail = `\x1b[31mno\n${'x'.repeat(10_000)}`;
  const message = await failureWith(({ url }) =>
    url === '/order' ? { status: 400, body: problem('malformed', detail) } : {},
  );
  expect(message).toMatch(/^CA refuses to accept the order with 400: \[31mno x+ \(malformed\)$/);
  expect(message.length).toBeLessThan(650);
});

test('reports when to apply again after too many requests', async () => {
  const limited = {
    status: 429,
    body: problem('rateLimited', 'too many certificates'),
    headers: { 'retry-after': '7200' },
  };
  expect(await failureWith(({ url }) => (url === '/order' ? limited : {}))).toBe(
    'CA accepts no more requests for now: too many certificates (rateLimited). Apply again after 120 minutes.',
  );
});

test('sends no requests to another server', async () => {
  const other = {
    newNonce: 'http://127.0.0.1:1/nonce',
    newAccount: 'http://127.0.0.1:1/',
    newOrder: 'http://127.0.0.1:1/',
  };
  expect(await failureWith(({ url }) => (url === '/dir' ? { body: other } : {}))).toContain(
    'names a URL of another server',
  );
  const elsewhere = { status: 302, headers: { location: 'http://127.0.0.1:1/' } };
  expect(await failureWith(({ url }) => (url === '/dir' ? elsewhere : {}))).toContain(
    'answers 302: set `directory` to the directory URL',
  );
});

test('fails if a response is too large, or if the authority rejects every nonce', async () => {
  const large = { body: 'x'.repeat(300 * 1024) };
  expect(await failureWith(({ url }) => (url === '/dir' ? large : {}))).toContain(
    'the answer is larger than 262144 bytes',
  );
  let attempts = 0;
  const message = await failureWith(({ url }) => {
    if (url !== '/account') return {};
    attempts++;
    return { status: 400, body: problem('badNonce', 'again') };
  });
  expect(message).toContain('refuses to open an account with 400: again (badNonce)');
  expect(attempts).toBe(4);
});

test('stops polling an order that never completes, with bounded pauses between polls', async () => {
  pauses = [];
  const message = await failureWith(({ url }, _body, origin) => {
    if (url === '/order') return { status: 201, headers: { location: `${origin}/one` } };
    return url === '/one' ? { body: { status: 'processing' }, headers: { 'retry-after': '999999' } } : {};
  });
  expect(message).toBe('the certificate authority does not finish the certificate; apply again to continue');
  expect(Math.max(...pauses)).toBe(15_000);
  expect(pauses.length).toBeLessThanOrEqual(100);
});

test('refuses a token that is a path, and a proof for a name that was not ordered', async () => {
  const withChallenge =
    (name: string, token: unknown): Answer =>
    ({ url }, _body, origin) => {
      if (url === '/order') return { status: 201, headers: { location: `${origin}/one` } };
      if (url === '/one') return { body: { status: 'pending', authorizations: [`${origin}/authz`] } };
      if (url !== '/authz') return {};
      const challenges = [null, { type: 'http-01', url: `${origin}/challenge`, token }];
      return { body: { status: 'pending', identifier: { type: 'dns', value: name }, challenges } };
    };
  expect(await failureWith(withChallenge('www.example.org', '../../../../etc/cron.d/x'))).toBe(
    'CA returned an invalid token',
  );
  expect(await failureWith(withChallenge('other.example.org', 'a'.repeat(32)))).toBe(
    'CA requires proof of control of a name that was not ordered',
  );
});

test('does not use a certificate that cannot be read', async () => {
  const message = await failureWith(({ url }, _body, origin) => {
    if (url === '/order') return { status: 201, headers: { location: `${origin}/one` } };
    if (url === '/one') return { body: { status: 'valid', certificate: `${origin}/certificate` } };
    return url === '/certificate' ? { body: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' } : {};
  });
  expect(message).toBe(
    'the certificate that CA issued is not used: certificate 1 of 1 cannot be read: copy its PEM text again',
  );
});

const check = (body: Partial<Parameters<typeof acmeCertificate>[1]>) => () =>
  certificateAcme.check(
    acmeCertificate('/tls', {
      directory: 'https://ca.example.org/',
      webroot: '/srv',
      ...body,
    }) as ResolvedResource<'certificate-acme'>,
  );

test('refuses a body that cannot be applied', () => {
  expect(check({})).not.toThrow();
  expect(check({ directory: 'http://ca.example.org/' })).toThrow('must begin with https://');
  expect(check({ agree_terms: false })).toThrow('`agree_terms` must be true');
  expect(check({ domains: ['*.example.org'] })).toThrow('declare `dns_script` instead of `webroot`');
});

const refusals = (fields: string): string[] => {
  const parsed = parseModule(`name: m
supports: [{ platform: linux }]
resources: [{ id: c, resource: { certificate-acme: { path: /tls, ${fields} } } }]
`);
  return parsed.ok ? [] : parsed.faults.map(({ message }) => message);
};

test('explains on upload how to correct an invalid body', () => {
  const valid = 'domains: [a.example.org], directory: "https://ca.example.org/d", agree_terms: true, webroot: /srv';
  expect(refusals(valid)).toEqual([]);
  expect(refusals(valid.replace('true', 'false'))).toEqual([expect.stringContaining('read the terms of service')]);
  expect(refusals(valid.replace('https:', 'http:'))).toEqual([expect.stringContaining('must begin with https://')]);
  expect(refusals(valid.replace('https://ca.example.org', 'http://127.0.0.1:14000'))).toEqual([]);
  expect(refusals(valid.replace('a.example.org', '192.0.2.7'))).toEqual([
    expect.stringContaining('must be a host name'),
  ]);
  expect(refusals(valid.replace(', webroot: /srv', ''))).toEqual([expect.stringContaining('webroot')]);
  expect(refusals(`${valid}, dns_script: x`)).toEqual([expect.stringContaining('cannot be combined')]);
  expect(refusals(`${valid}, email: "mailto:a@example.org"`)).toEqual([expect.stringContaining('without "mailto:"')]);
});
