import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ResolvedResource } from '@muster/protocol/module';
import * as x509 from '@peculiar/x509';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../../lib/src/clock.ts';
import { removeDirectory, temporaryDirectory } from '../../converge/test/agent.ts';
import { acmeCertificate } from '../../converge/test/desired.ts';
import { dayMs, type MadeCertificate, madeCertificate } from '../../converge/test/made-certificates.ts';
import { HostFailure } from '../../host/failure.ts';
import type { Machine } from '../provider/provider.ts';
import { readFound, requestChanges } from './found.ts';
import { issue } from './issue.ts';
import { forgetOrder } from './order.ts';

/** Tests when an order is kept, dropped, or repeated, with an authority whose responses each test chooses. */

type Declared = ResolvedResource<'certificate-acme'>;
type Answer = { status?: number; body?: unknown; headers?: Record<string, string> };

let issuer: MadeCertificate;
beforeAll(async () => {
  issuer = await madeCertificate('Test CA', null, null);
});

/**
 * Properties of the issued certificates: start and end of their validity in days from now, names, and whether they are
 * self-signed.
 */
let made: { from: number; until: number; names: string[]; ownKey: boolean };
/** Replaces a response; undefined for the default one. */
let answers: (url: string) => Answer | undefined;
let requests: string[];
let orders: string[];
let files: Map<string, string>;
let now: number;
let passed: number;
let stop: AbortController;
let warnings: string[];

beforeEach(() => {
  made = { from: -1, until: 89, names: ['www.example.org'], ownKey: false };
  answers = () => undefined;
  [requests, orders, files, warnings] = [[], [], new Map(), []];
  [now, passed, stop] = [Date.now(), 0, new AbortController()];
});

async function certificateFor(csr: string): Promise<string> {
  const { publicKey } = new x509.Pkcs10CertificateRequest(Buffer.from(csr, 'base64url'));
  const own = made.ownKey ? await ownKeys() : null;
  const certificate = await x509.X509CertificateGenerator.create({
    ...{ serialNumber: '01', subject: made.ownKey ? issuer.made.subject : 'CN=leaf', issuer: issuer.made.subject },
    notBefore: new Date(now + made.from * dayMs),
    notAfter: new Date(now + made.until * dayMs),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    publicKey,
    signingKey: own ?? (issuer.keys.privateKey as never),
    extensions: [new x509.SubjectAlternativeNameExtension(made.names.map((value) => ({ type: 'dns', value })))],
  });
  return certificate.toString('pem');
}

/** Returns the key of the certificate, which the test reads from the order. */
async function ownKeys(): Promise<never> {
  const { key } = keptOrder() as { key: string };
  const der = Buffer.from(key.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  return (await webcrypto.subtle.importKey('pkcs8', der, { name: 'ECDSA', namedCurve: 'P-256' }, false, [
    'sign',
  ])) as never;
}

let server: Server;
let origin: string;
const certificates = new Map<string, string>();
async function usual(url: string, body: string): Promise<Answer> {
  const at = (path: string) => `${origin}${path}`;
  if (url === '/dir') return { body: { newNonce: at('/nonce'), newAccount: at('/account'), newOrder: at('/order') } };
  if (url === '/account') return { status: 201, headers: { location: at('/me') } };
  if (url === '/order') {
    orders.push(`/orders/${orders.length + 1}`);
    certificates.clear();
    return { status: 201, headers: { location: at(orders.at(-1) ?? '') } };
  }
  if (url === '/finalize') {
    const { csr } = JSON.parse(Buffer.from(JSON.parse(body).payload, 'base64url').toString());
    certificates.set('one', await certificateFor(csr));
  }
  if (url === '/certificate') return { body: certificates.get('one') };
  if (!url.startsWith('/orders/')) return {};
  return {
    body: {
      status: certificates.size > 0 ? 'valid' : 'ready',
      finalize: at('/finalize'),
      certificate: at('/certificate'),
    },
  };
}
beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const url = request.url ?? '';
    requests.push(url);
    const { status = 200, body: sent = {}, headers = {} } = answers(url) ?? (await usual(url, body));
    response.writeHead(status, { 'replay-nonce': 'n0nce', ...headers });
    response.end(typeof sent === 'string' ? sent : JSON.stringify(sent));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** A clock whose pauses end immediately. The 60-second timeouts of requests never expire. */
const clock: Clock = {
  now: () => now,
  monotonic: () => passed,
  after(ms, action) {
    if (ms === 60_000) return () => {};
    passed += ms;
    setImmediate(action);
    return () => {};
  },
};
const machine = () =>
  ({
    ...{
      clock,
      environment: {},
      limits: { scriptMs: 60_000 },
      startedProcess() {},
      printed() {},
      stop: stop.signal,
      cancelled: () => false,
    },
    warn: (message: string) => void warnings.push(message),
    privateFiles: {
      read: (name: string) => files.get(name) ?? null,
      write: (name: string, content: string) => void files.set(name, content),
      remove: (name: string) => void files.delete(name),
    },
  }) as unknown as Machine;
const declared = (body: Partial<Declared['body']> = {}): Declared =>
  acmeCertificate('/tls', { directory: `${origin}/dir`, webroot: '/none', ...body } as never) as Declared;

/** Applies once. Returns the error message, or `issued`. */
async function apply(resource = declared()): Promise<string> {
  try {
    await issue(resource, machine());
  } catch (error) {
    return (error as Error).message.replaceAll(/127\.0\.0\.1:\d+/g, 'CA');
  }
  await forgetOrder(resource, machine());
  return 'issued';
}
const keptOrder = (): object | null => {
  const [, text] = [...files].find(([name]) => name.startsWith('acme-order-')) ?? [];
  return text === undefined ? null : JSON.parse(text);
};

describe('with a certificate that cannot be used', () => {
  test('keeps the order while its certificate is not valid yet, and uses the certificate later', async () => {
    made.from = 1;
    expect(await apply()).toContain('the certificate that CA issued is not used: it is valid only from ');
    expect(await apply()).toContain('it is valid only from ');
    now += 1.5 * dayMs;
    expect(await apply()).toBe('issued');
    expect(orders).toHaveLength(1);
  });

  test.each([
    { fault: { names: ['other.example.org'] }, message: 'domains is other.example.org, not www.example.org' },
    { fault: { ownKey: true }, message: 'it is signed by its own key' },
    { fault: { from: -9, until: -1 }, message: 'not_after is ' },
  ])('repeats the order only after two days: $message', async ({ fault, message }) => {
    Object.assign(made, fault);
    for (let i = 0; i < 3; i++)
      expect(await apply()).toContain(`the certificate that CA issued is not used: ${message}`);
    expect(orders).toHaveLength(1);
    now += 2 * dayMs;
    Object.assign(made, { from: -1, until: 89, names: ['www.example.org'], ownKey: false });
    expect(await apply()).toBe('issued');
    expect(orders).toHaveLength(2);
  });
});

describe('with an order that was begun', () => {
  const refusal = (status: number, type = '') => ({
    status,
    body: type === '' ? 'no' : { type: `urn:ietf:params:acme:error:${type}` },
  });
  const begin = async () => {
    answers = (url) => (url.startsWith('/orders/') ? refusal(503) : undefined);
    expect(await apply()).toContain('503');
  };

  test.each([
    refusal(429),
    refusal(302),
    refusal(401),
    refusal(403),
    refusal(408),
    refusal(400, 'badNonce'),
    refusal(400, 'serverInternal'),
  ])('continues the order after the authority refused a request: $status $body', async (refused) => {
    await begin();
    answers = (url) => (url.startsWith('/orders/') ? refused : undefined);
    expect(await apply()).not.toBe('issued');
    answers = () => undefined;
    expect(await apply()).toBe('issued');
    expect(orders).toHaveLength(1);
  });

  test.each([refusal(404), refusal(400, 'malformed'), refusal(403, 'unauthorized')])(
    'drops an order that the authority no longer has: $status $body',
    async (refused) => {
      await begin();
      answers = (url) => (url === '/orders/1' ? refused : undefined);
      expect(await apply()).toBe('issued');
      expect(orders).toHaveLength(2);
    },
  );

  test('repeats a failed order only in the next apply', async () => {
    await begin();
    let reads = 0;
    answers = (url) =>
      url === '/orders/1'
        ? { body: { status: reads++ === 0 ? 'ready' : 'invalid', finalize: `${origin}/f` } }
        : undefined;
    expect(await apply()).toContain('CA did not issue the certificate');
    expect(orders).toHaveLength(1);
    answers = () => undefined;
    expect(await apply()).toBe('issued');
    expect(orders).toHaveLength(2);
  });
});

test.each([
  { kind: 'an object that refuses to be a text', value: '{"toString":0}' },
  { kind: 'a list in lists', value: `${'['.repeat(50_000)}${']'.repeat(50_000)}` },
])('fails only the resource if the authority responds with $kind', async ({ value }) => {
  const pending = { status: 'pending', authorizations: [`${origin}/authz`] };
  for (const [url, body] of [
    ['/order', `{"type":${value}}`],
    ['/orders/1', `{"status":${value}}`],
    ['/orders/1', `{"status":"pending","authorizations":[${value}]}`],
    ['/authz', `{"identifier":{"value":${value}}}`],
  ] as const) {
    [orders, files] = [[], new Map()];
    answers = (asked) =>
      asked === url
        ? { status: url === '/order' ? 400 : 200, body }
        : asked === '/orders/1'
          ? { body: pending }
          : undefined;
    await expect(issue(declared(), machine()), url).rejects.toBeInstanceOf(HostFailure);
  }
});

test('stops after ten minutes if each response takes one minute, and keeps the order for the next apply', async () => {
  const domains = Array.from({ length: 100 }, (_, i) => `n${i}.example.org`);
  answers = (url) => {
    passed += 59_000;
    if (url === '/orders/1')
      return { body: { status: 'pending', authorizations: domains.map((name) => `${origin}/authz/${name}`) } };
    return url.startsWith('/authz/') ? { body: { status: 'valid' } } : undefined;
  };
  expect(await apply(declared({ domains }))).toBe(
    'the certificate authority CA takes more than 10 minutes; apply again to continue',
  );
  expect(requests.length).toBeLessThanOrEqual(11);
  expect(keptOrder()).toMatchObject({ order: `${origin}/orders/1` });
});

describe('with proofs', () => {
  let folder: string;
  beforeEach(() => {
    folder = temporaryDirectory();
    for (const name of ['old', 'new']) mkdirSync(`${folder}/${name}`);
    const challenges = ['http-01', 'dns-01'].map((type) => ({
      type,
      url: `${origin}/challenge`,
      token: 'a'.repeat(32),
    }));
    answers = (url) => {
      if (url.startsWith('/orders/')) return { body: { status: 'pending', authorizations: [`${origin}/authz`] } };
      if (url === '/challenge') return { status: 503 };
      const identifier = { value: 'www.example.org' };
      return url === '/authz' ? { body: { status: 'pending', identifier, challenges } } : undefined;
    };
  });
  afterEach(() => removeDirectory(folder));

  test('removes a proof from the directory where it was published, and keeps its record until it is removed', async () => {
    const first = declared({ webroot: `${folder}/old` });
    // A directory at the path of the proof makes its removal fail.
    answers = ((before) => (url) => {
      if (url === '/challenge') {
        const proof = `${folder}/old/.well-known/acme-challenge/${'a'.repeat(32)}`;
        rmSync(proof);
        mkdirSync(proof);
      }
      return before(url);
    })(answers);
    expect(await apply(first)).toContain('503');
    expect(warnings).toHaveLength(1);
    expect(keptOrder()).toMatchObject({ published: [{ domain: 'www.example.org', webroot: `${folder}/old` }] });
    rmdirSync(`${folder}/old/.well-known/acme-challenge/${'a'.repeat(32)}`);
    await forgetOrder(declared({ webroot: `${folder}/new` }), machine());
    expect(readdirSync(`${folder}/old`)).toEqual([]);
    expect(keptOrder()).toBeNull();
  });

  test('keeps an order with its proof if the agent stops during `dns_script`', async () => {
    const started = `${folder}/started`;
    const resource = declared({ webroot: null, dns_script: `echo > ${started}; exec sleep 1` } as never);
    const watched = setInterval(() => existsSync(started) && stop.abort(new Error('stopped')), 5);
    expect(await apply(resource)).toBe('stopped');
    clearInterval(watched);
    expect(keptOrder()).toMatchObject({ published: [{ domain: 'www.example.org', webroot: null }] });
  });
});

describe('with a certificate on the machine', () => {
  const changes = async (names: string[], body: Partial<Declared['body']>) => {
    const { pem, key } = await madeCertificate('leaf', issuer, names, 300);
    return requestChanges(declared(body).body, readFound(pem, key), now);
  };
  const long = Array.from({ length: 300 }, (_, i) => `name-${i}.of-a-long-domain-name.example.org`);

  test('requests a new certificate if any name is missing, regardless of the number of names', async () => {
    expect(await changes(long, { domains: long })).toBeNull();
    const [change] = (await changes(long, { domains: [...long, 'z.example.org'] })) ?? [];
    expect(change).toMatchObject({ field: 'domains', to: expect.stringMatching(/^z\.example\.org, name-0/) });
  });

  test('keeps a certificate that has additional names, or a wildcard name that covers the declared ones', async () => {
    expect(await changes(['a.example.org', 'www.a.example.org'], { domains: ['a.example.org'] })).toBeNull();
    expect(await changes(['*.example.org'], { domains: ['a.example.org'] })).toBeNull();
    expect(await changes(['a.example.org'], { domains: ['*.example.org'] })).toHaveLength(1);
  });

  test("keeps a certificate even if its issuer's certificate expires soon", async () => {
    const brief = await madeCertificate('brief', issuer, null, 5);
    const { pem, key } = await madeCertificate('leaf', brief, ['www.example.org'], 300);
    expect(requestChanges(declared().body, readFound(pem + brief.pem, key), now)).toBeNull();
  });
});
