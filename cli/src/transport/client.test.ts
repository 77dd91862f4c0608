import { createHash, X509Certificate } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makeCertificate } from '../../test/certificate.ts';
import { type Standing, standIn } from '../../test/orchestrator.ts';
import { CliError, exits } from '../exit.ts';
import { openTransport, type TransportOptions, TrustDecided, type UnknownCertificate } from './client.ts';
import { showFingerprint } from './trust.ts';

let first: Awaited<ReturnType<typeof makeCertificate>>;
let second: Awaited<ReturnType<typeof makeCertificate>>;
let server: Standing;
const closing: (() => void)[] = [];

beforeAll(async () => {
  [first, second] = await Promise.all([makeCertificate(), makeCertificate()]);
  server = await standIn({ tls: first });
});
afterAll(() => server.close());
afterEach(() => {
  for (const close of closing.splice(0)) close();
  server.seen.length = 0;
});

function open(policy: TransportOptions['policy'], firstUse?: TransportOptions['firstUse']) {
  const { transport, close } = openTransport({
    policy,
    firstUse:
      firstUse ??
      (async () => {
        throw new Error('nobody was to be asked');
      }),
    connectTimeout: 2000,
  });
  closing.push(close);
  return (url = server.url) =>
    transport({
      method: 'GET',
      url: `${url}/api/v1/status`,
      headers: { authorization: 'Bearer secret' },
      body: undefined,
      signal: undefined,
    });
}

const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it was accepted'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(CliError);
      return error as CliError;
    },
  );

test('accepts the pinned certificate even though it is self-signed', async () => {
  const answer = await open({ kind: 'pinned', fingerprint: first.fingerprint, source: 'stored' })();
  expect(answer.status).toBe(200);
});

test('refuses a certificate other than the pinned one before sending any data', async () => {
  const error = await refusal(open({ kind: 'pinned', fingerprint: second.fingerprint, source: 'stored' })());
  expect(error).toMatchObject({ code: 'certificate_changed', exit: exits.unreachable });
  expect(error.message).toContain(showFingerprint(first.fingerprint));
  expect(error.message).toContain(showFingerprint(second.fingerprint));
  expect(error.remedy).toContain('muster login');
  expect(server.seen).toEqual([]);
});

test('shows the certificate at first use, and sends nothing until it is pinned', async () => {
  const certificates: UnknownCertificate[] = [];
  const get = open({ kind: 'authorities' }, async (certificate) => {
    certificates.push(certificate);
  });
  const error = await refusal(get());
  expect(error).toBeInstanceOf(TrustDecided);
  expect(server.seen).toEqual([]);
  const { fingerprint } = error as TrustDecided;
  expect((await open({ kind: 'pinned', fingerprint, source: 'stored' })()).status).toBe(200);
  expect(certificates).toEqual([
    {
      origin: server.url,
      fingerprint: first.fingerprint,
      subject: 'CN=muster test',
      reason: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    },
  ]);
});

test('refuses a certificate that changes while the operator is being asked', async () => {
  const swapped = await standIn({ tls: first });
  const { port } = new URL(swapped.url);
  let impostor: Standing | undefined;
  const get = open({ kind: 'authorities' }, async () => {
    await swapped.close();
    impostor = await standIn({ tls: second, port: Number(port) });
  });
  const { fingerprint } = (await refusal(get(swapped.url))) as TrustDecided;
  const error = await refusal(open({ kind: 'pinned', fingerprint, source: 'stored' })(swapped.url));
  expect(error.code).toBe('certificate_changed');
  expect(impostor?.seen).toEqual([]);
  await impostor?.close();
});

test('sends nothing if the operator does not trust the certificate', async () => {
  const get = open({ kind: 'authorities' }, async () => {
    throw new CliError(exits.unreachable, 'certificate_refused', 'no');
  });
  expect((await refusal(get())).code).toBe('certificate_refused');
  expect(server.seen).toEqual([]);
});

test.each([
  ['stored', 'has changed', / trust it: muster login --url https:\S+ --fingerprint [0-9A-F:]{95}$/],
  ['--fingerprint', 'is not the one from --fingerprint', / specify it: --fingerprint [0-9A-F:]{95}$/],
  ['MUSTER_FINGERPRINT', 'is not the one from MUSTER_FINGERPRINT', / set it: export MUSTER_FINGERPRINT=[0-9A-F:]{95}$/],
] as const)('explains how to accept a certificate other than the one from %s', async (source, message, remedy) => {
  const error = await refusal(open({ kind: 'pinned', fingerprint: second.fingerprint, source })());
  expect(error.message).toContain(message);
  expect(error.remedy).toMatch(remedy);
});

test('accepts any certificate if the check is disabled', async () => {
  expect((await open({ kind: 'anything' })()).status).toBe(200);
});

test('reuses one connection for consecutive requests', async () => {
  const get = open({ kind: 'pinned', fingerprint: first.fingerprint, source: 'stored' });
  const before = server.connections();
  for (let time = 0; time < 3; time++) await (await get()).text();
  expect(server.connections() - before).toBe(1);
});

test.each([
  ['nothing is listening', async () => 'https://127.0.0.1:1', 'nothing is listening at that address'],
  ['the server does not use TLS', async () => (await plain()).url.replace('http:', 'https:'), 'does not use TLS'],
  ['the server hangs up', async () => `https://127.0.0.1:${await hangUp()}`, 'the connection was closed'],
])('reports that %s', async (_, address, reason) => {
  const error = await refusal(
    open({ kind: 'pinned', fingerprint: first.fingerprint, source: 'stored' })(await address()),
  );
  expect(error).toMatchObject({ code: 'unreachable', exit: exits.unreachable });
  expect(error.message).toContain(reason);
  expect(error.remedy).not.toBeNull();
});

const keyDigest = ({ cert }: { cert: string }) =>
  createHash('sha256')
    .update(new X509Certificate(cert).publicKey.export({ format: 'der', type: 'spki' }))
    .digest('hex');
const serversAfterCall = async (policy: TransportOptions['policy'], url: string): Promise<string[]> => {
  const opened = openTransport({ policy, firstUse: async () => {} });
  closing.push(opened.close);
  const call = { method: 'GET', headers: {}, body: undefined, signal: undefined };
  try {
    await opened.transport({ ...call, url: `${url}/api/v1/status` });
  } catch (error) {
    if (!(error instanceof TrustDecided)) throw error;
    return serversAfterCall({ kind: 'pinned', fingerprint: error.fingerprint, source: 'stored' }, url);
  }
  return opened.serversOf(new URL(url));
};

test.each<[string, () => TransportOptions['policy']]>([
  ['from --fingerprint', () => ({ kind: 'pinned', fingerprint: first.fingerprint, source: '--fingerprint' })],
  ['that was trusted before', () => ({ kind: 'pinned', fingerprint: first.fingerprint, source: 'stored' })],
  ['that the operator trusts now', () => ({ kind: 'authorities' })],
])('identifies a server only by its key if its certificate is %s', async (_, policy) => {
  // On first use, an on-path attacker has the right origin but a different key.
  expect(await serversAfterCall(policy(), server.url)).toEqual([`tls:${keyDigest(first)}`]);
});

test('identifies a server only by its key if certificates are not checked, and refuses a different key', async () => {
  expect(await serversAfterCall({ kind: 'anything' }, server.url)).toEqual([`tls:${keyDigest(first)}`]);
  const other = await standIn({ tls: second });
  closing.push(() => void other.close());
  const opened = openTransport({ policy: { kind: 'anything' }, firstUse: async () => {} });
  closing.push(opened.close);
  const call = { method: 'GET', headers: {}, body: undefined, signal: undefined };
  await opened.transport({ ...call, url: `${server.url}/api/v1/status` });
  const error = await refusal(opened.transport({ ...call, url: `${other.url}/api/v1/status` }));
  expect(error.code).toBe('certificate_changed');
  expect(other.seen).toEqual([]);
});

test('identifies a plain HTTP server by its origin', async () => {
  const { url } = await plain();
  expect(await serversAfterCall({ kind: 'authorities' }, url)).toEqual([`origin:${url}`]);
});

test('stops waiting for a TLS handshake after the time limit', async () => {
  const port = await listen(createServer(() => {}));
  const { transport, close } = openTransport({
    policy: { kind: 'anything' },
    firstUse: async () => {},
    connectTimeout: 50,
  });
  closing.push(close);
  const call = { method: 'GET', headers: {}, body: undefined, signal: undefined };
  const error = await refusal(transport({ ...call, url: `https://127.0.0.1:${port}/` }));
  expect(error.message).toContain('no answer within the time limit');
});

async function plain(): Promise<Standing> {
  const standing = await standIn();
  closing.push(() => void standing.close());
  return standing;
}

const hangUp = () => listen(createServer((socket) => socket.destroy()));

async function listen(listener: Server): Promise<number> {
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const sockets = new Set<import('node:net').Socket>();
  listener.on('connection', (socket) => sockets.add(socket));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  const address = listener.address();
  return typeof address === 'object' && address ? address.port : 0;
}
