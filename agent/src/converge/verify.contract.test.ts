import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Verification } from '@muster/protocol/wire';
import { afterEach, describe, expect, test } from 'vitest';
import { startAgent } from './test/agent.ts';
import { file, operation, script } from './test/desired.ts';
import { useAgent } from './test/harness.ts';

/** Runs an agent's verifications against real servers. */

const h = useAgent();
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Handler = NonNullable<Parameters<typeof createServer>[1]>;
async function serve(handler: Handler, port = 0, host = '127.0.0.1'): Promise<number> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return (server.address() as AddressInfo).port;
}
const answering =
  (status: number): Handler =>
  (_request, response) =>
    response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end('x');

/** Returns a port on which no process is listening. */
async function closedPort(): Promise<number> {
  const port = await serve(answering(200));
  const server = servers.pop() as Server;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Timeout in seconds. Long enough for a busy machine; tests of failures use a shorter timeout. */
const of = { module: 'web-site', sensitive: false, timeout: 10 };
const http = (url: string, rest: Partial<Extract<Verification, { type: 'http' }>> = {}): Verification => ({
  type: 'http',
  ...of,
  url,
  status: 200,
  ...rest,
});
const tcp = (port: number, host: string | null = null): Verification => ({ type: 'tcp', ...of, host, port });
const command = (text: string, rest: Partial<typeof of> = {}): Verification => ({
  type: 'command',
  ...of,
  ...rest,
  command: text,
});
const path = (): string => `${h.root}/f`;
const applying = (verify: Verification[], content = 'x') => operation('apply', [file(path(), { content })], { verify });
const apply = async (...verify: Verification[]) => (await h.agent.run(applying(verify))).finished;
const applyBriefly = (...verify: Verification[]) => apply(...verify.map((one) => ({ ...one, timeout: 3 })));

describe('verify', () => {
  test('succeeds when all verifications pass, in order', async () => {
    const port = await serve(answering(200));
    const moved = await serve(answering(302));
    const finished = await apply(
      http(`http://127.0.0.1:${port}/`),
      http(`http://127.0.0.1:${moved}/`, { status: 302 }),
      tcp(port),
      tcp(port, '127.0.0.1'),
      command(`test "$(cat ${path()})" = x`),
    );
    expect(finished).toMatchObject({ status: 'succeeded', error: null });
  });

  test('connects to a server that listens only on IPv6', async () => {
    const port = await serve(answering(200), 0, '::1');
    expect(await apply(tcp(port))).toMatchObject({ status: 'succeeded' });
  });

  test('fails with an error that lists the failed and the skipped verifications, but keeps the changes', async () => {
    const port = await serve(answering(502));
    const finished = await applyBriefly(
      command('true'),
      http(`http://me:pw@127.0.0.1:${port}/a`),
      tcp(port),
      command('true'),
    );
    expect(finished).toMatchObject({ status: 'failed', summary: { failed: 0, changed: 1 } });
    expect(finished.error).toBe(
      `verify: module web-site: http http://127.0.0.1:${port}/a answered 502, not 200; 2 more were not tried. All resources are in place.`,
    );
    expect(readFileSync(path(), 'utf8')).toBe('x');
    // Drift is measured against the last successful apply.
    expect((await h.agent.run(operation('drift'))).finished.error).toMatch(/apply again/);
    await apply();
    expect((await h.agent.run(operation('drift'))).finished.status).toBe('succeeded');
  });

  test.each<[string, (closed: number) => Verification, RegExp]>([
    [
      'no HTTP server listens',
      (port) => http(`http://127.0.0.1:${port}/`),
      /was not answered: the connection was refused/,
    ],
    [
      'no process listens on the port',
      (port) => tcp(port),
      /tcp port \d+ does not accept connections: the connection was refused/,
    ],
    [
      'an exit code',
      () => command('echo one; echo two >&2; exit 3'),
      /command `echo .*` ended with exit code 3: two\./,
    ],
    ['a signal', () => command('kill -9 $$'), /was ended by SIGKILL/],
    ['a syntax error', () => command('if'), /ended with exit code 2/],
    ['an invalid URL', () => http('http://[/'), /was not answered: Invalid URL/],
  ])('reports why a verification failed: %s', async (_name, verification, message) => {
    const finished = await applyBriefly(verification(await closedPort()));
    expect(finished.status).toBe('failed');
    expect(finished.error).toMatch(message);
  });

  test('does not follow redirects, trust unknown certificates, or wait for a body', async () => {
    const moved = await serve(answering(301));
    expect((await applyBriefly(http(`http://127.0.0.1:${moved}/`))).error).toMatch(/answered 301, not 200/);
    const endless = await serve((_request, response) => {
      response.writeHead(200);
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65536)));
      };
      response.on('drain', pour);
      pour();
    });
    expect(await apply(http(`http://127.0.0.1:${endless}/`))).toMatchObject({ status: 'succeeded' });
    const { createServer: secure } = await import('node:https');
    const { spawnSync } = await import('node:child_process');
    const made = spawnSync('openssl', [
      ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost'.split(' '),
      '-keyout',
      `${h.root}.key`,
      '-out',
      `${h.root}.crt`,
    ]);
    expect(made.status, String(made.stderr)).toBe(0);
    const server = secure(
      { key: readFileSync(`${h.root}.key`), cert: readFileSync(`${h.root}.crt`) },
      (_request, response) => response.end('x'),
    );
    servers.push(server as unknown as Server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect((await applyBriefly(http(`https://localhost:${port}/`))).error).toMatch(/was not answered: .*certificate/);
  });

  test('waits, within its timeout, for a service that is still starting', async () => {
    const port = await closedPort();
    const flag = `${h.root}/flag`;
    setTimeout(() => void serve(answering(200), port), 400);
    setTimeout(() => writeFileSync(flag, ''), 700);
    expect(await apply(http(`http://127.0.0.1:${port}/`))).toMatchObject({ status: 'succeeded' });
    expect(await apply(command(`test -e ${flag}`))).toMatchObject({ status: 'succeeded' });
  });

  test('reports an earlier problem if the timeout interrupted the last attempt', async () => {
    let requests = 0;
    const port = await serve((_request, response) => {
      if (requests++ === 0) response.writeHead(503).end();
    });
    expect((await apply(http(`http://127.0.0.1:${port}/`, { timeout: 5 }))).error).toMatch(/answered 503, not 200/);
    expect(requests).toBe(2);
  });

  test('stops waiting for a server that never responds', async () => {
    const port = await serve(() => {});
    // An endless wait would exceed this test's timeout.
    expect((await applyBriefly(http(`http://127.0.0.1:${port}/`))).error).toMatch(
      /was not answered: there was no response/,
    );
  });

  test('runs no verification after a failed resource, or in a plan or drift check', async () => {
    const ran = `${h.root}/ran`;
    const verify = [command(`touch ${ran}`)];
    await h.agent.run(operation('apply', [script('s', { apply: 'exit 1' })], { verify }));
    await h.agent.run(operation('plan', [file(path())], { verify }));
    await h.agent.run(operation('drift', [], { verify }));
    expect(existsSync(ran)).toBe(false);
    await apply(...verify);
    expect(existsSync(ran)).toBe(true);
  });

  test('hides sensitive values in the reason for a failure', async () => {
    const port = await serve(answering(403));
    const errors = [
      (await applyBriefly(http(`http://127.0.0.1:${port}/hunter2`, { sensitive: true }))).error,
      (await applyBriefly(command('echo hunter2; false', { sensitive: true }))).error,
    ];
    expect(errors[0]).toMatch(/module web-site: http \(sensitive\) answered 403, not 200/);
    expect(errors[1]).toMatch(/command \(sensitive\) ended with exit code 1\./);
    expect(errors.join()).not.toContain('hunter2');
  });

  test('stops a verification when its operation is canceled', async () => {
    const began = `${h.root}/began`;
    const sent = applying([command(`touch ${began}; sleep 60`)]);
    const ended = h.agent.run(sent);
    await expect.poll(() => existsSync(began)).toBe(true);
    h.agent.engine.cancel(sent.operation_id);
    const { finished } = await ended;
    expect(finished).toMatchObject({ status: 'cancelled', error: expect.stringMatching(/resources are in place/) });
  });

  test('repeats only the verification after the agent is restarted', async () => {
    const count = `${h.root}/count`;
    const sent = operation('apply', [script('s', { apply: `echo ran >> ${h.root}/script` })], {
      verify: [command(`echo x >> ${count}; test "$(wc -l < ${count})" -ge 2 || sleep 60`)],
    });
    await h.agent.engine.accept(sent);
    await expect.poll(() => existsSync(count)).toBe(true);
    await h.agent.stop();
    h.agent = await startAgent(h.dataDir);
    const outcome = await h.agent.ended(sent.operation_id);
    expect(outcome.finished).toMatchObject({ status: 'succeeded', error: null, summary: { total: 1 } });
    expect(readFileSync(count, 'utf8')).toBe('x\nx\n');
    expect(readFileSync(`${h.root}/script`, 'utf8')).toBe('ran\n');
  });
});
