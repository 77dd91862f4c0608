import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../../lib/src/clock.ts';
import { bearer, testApp } from '../../../test/app-fixture.ts';
import { readInstallFiles } from './install-files.ts';

const large = Buffer.alloc(8 * 1024 * 1024, 'muster');
const deb = 'muster_1.2.3_amd64.deb';
const sum = (content: Buffer | string) => hash('sha256', content, 'hex');
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-install-'));
  writeFileSync(join(folder, deb), large);
  writeFileSync(join(folder, 'agent.sh'), 'echo hello\n');
  writeFileSync(join(folder, 'secret'), 'nobody reads this');
  symlinkSync('secret', join(folder, 'link'));
  writeFileSync(
    join(folder, 'SHA256SUMS'),
    `${sum(large)}  ${deb}\n${sum('x')}  link\n${sum('x')}  not-there\n${sum('x')}  muster\n`,
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

const openApp = async (clock: Clock = systemClock) =>
  testApp({}, { install: await readInstallFiles(folder, '/usr/bin/node'), clock });

describe('installation files', () => {
  test('serves files to anyone, with headers for caches and resumed downloads', async () => {
    const app = await openApp();
    const script = await app.inject('/install/agent.sh');
    expect([script.statusCode, script.body, script.headers['cache-control']]).toEqual([
      200,
      'echo hello\n',
      'no-cache',
    ]);
    const whole = await app.inject(`/install/${deb}`);
    expect(whole.statusCode).toBe(200);
    expect(sum(whole.rawPayload)).toBe(sum(large));
    expect(whole.headers).toMatchObject({
      etag: `"${sum(large)}"`,
      'accept-ranges': 'bytes',
      'content-length': String(large.length),
      'cache-control': 'public, max-age=86400',
      'content-type': 'application/vnd.debian.binary-package',
    });
    const head = await app.inject({ method: 'HEAD', url: `/install/${deb}` });
    expect([head.statusCode, head.headers['content-length'], head.body]).toEqual([200, String(large.length), '']);
    const sums = await app.inject('/install/SHA256SUMS');
    expect(sums.body).toContain(`${sum(large)}  ${deb}`);
    const known = await app.inject({ url: `/install/${deb}`, headers: { 'if-none-match': `"a", W/"${sum(large)}"` } });
    expect([known.statusCode, known.body]).toEqual([304, '']);
  });

  test.each([
    ['bytes=10-19', 10, 20],
    ['bytes=8388600-', large.length - 8, large.length],
    ['bytes=-6', large.length - 6, large.length],
    ['bytes=8388600-99999999', large.length - 8, large.length],
  ])('serves the range %s', async (range, from, to) => {
    const app = await openApp();
    const part = await app.inject({ url: `/install/${deb}`, headers: { range } });
    expect(part.statusCode).toBe(206);
    expect(part.rawPayload.equals(large.subarray(from, to))).toBe(true);
    expect(part.headers['content-range']).toBe(`bytes ${from}-${to - 1}/${large.length}`);
  });

  test.each(['bytes=99999999-', 'bytes=5-4', 'bytes=0-1,3-4', 'bytes=-', 'lines=1-2', 'bytes=-0'])(
    'serves the whole file for the invalid range %s',
    async (range) => {
      const app = await openApp();
      const { statusCode, headers } = await app.inject({ method: 'HEAD', url: `/install/${deb}`, headers: { range } });
      expect([statusCode, headers['content-length']]).toEqual([200, String(large.length)]);
    },
  );

  test('sends the whole file if the file has changed since the client downloaded its first part', async () => {
    const app = await openApp();
    const headers = { range: 'bytes=1-2', 'if-range': '"another"' };
    expect((await app.inject({ method: 'HEAD', url: `/install/${deb}`, headers })).statusCode).toBe(200);
  });

  test.each([
    ...[
      'secret',
      'link',
      'not-there',
      'muster',
      '',
      '..',
      '../secret',
      '%2e%2e/secret',
      '..%2fsecret',
      '%2fetc%2fpasswd',
    ],
    ...['/etc/passwd', 'agent.sh/', 'agent.sh%00', 'AGENT.SH', '%61gent.sh/../secret', '..\\secret'],
  ])('refuses to serve the file %j, which is not listed', async (name) => {
    const app = await openApp();
    const answer = await app.inject({ url: `/install/${name}`, headers: bearer('admin') });
    expect(answer.statusCode, answer.body).toBe(404);
    expect(answer.headers['content-type']).toContain('application/problem+json');
    expect(answer.body).not.toContain('nobody reads this');
  });

  test('explains why there are no packages', async () => {
    const app = testApp();
    const answer = await app.inject('/install/agent.sh');
    expect(answer.json()).toMatchObject({
      status: 404,
      code: 'package_not_found',
      detail: expect.stringMatching(/npm run build/),
    });
    expect(answer.headers['cache-control']).toBe('no-store');
    expect((await app.inject({ method: 'POST', url: '/install/agent.sh' })).statusCode).toBe(404);
    expect((await (await openApp()).inject({ method: 'PUT', url: '/install/agent.sh' })).headers.allow).toBe(
      'GET, HEAD',
    );
  });

  test('refuses a file that was replaced after the table was read', async () => {
    const app = await openApp();
    writeFileSync(join(folder, deb), 'another one');
    try {
      const answer = await app.inject(`/install/${deb}`);
      expect(answer.json()).toMatchObject({ status: 404, detail: expect.stringContaining('retry in a minute') });
      expect(answer.headers['content-length']).not.toBe(String(large.length));
      expect(answer.headers.etag).toBeUndefined();
    } finally {
      writeFileSync(join(folder, deb), large);
    }
  });
});

describe('a package folder', () => {
  test('accepts a missing folder, unless it is configured', async () => {
    expect((await readInstallFiles(null, '/nowhere/bin/muster')).size).toBe(0);
    await expect(readInstallFiles('/nowhere', '/usr/bin/node')).rejects.toThrow('packages_dir');
  });

  test('ignores a folder without the installation script', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'muster-install-'));
    writeFileSync(join(empty, 'SHA256SUMS'), '');
    expect((await readInstallFiles(empty, '/usr/bin/node')).size).toBe(0);
    writeFileSync(join(empty, 'SHA256SUMS'), `${'0'.repeat(64)}  ../secret\n`);
    await expect(readInstallFiles(empty, '/usr/bin/node')).rejects.toThrow('plain file name');
    rmSync(empty, { recursive: true });
  });

  test('serves the running program if the folder has no copy of it', async () => {
    const program = join(folder, 'bin-muster', 'muster');
    mkdirSync(join(folder, 'bin-muster'));
    writeFileSync(program, 'the program');
    expect((await readInstallFiles(folder, program)).get('muster')).toMatchObject({ path: program, size: 11 });
  });
});

describe('many machines at once', () => {
  /** Opens connections from different addresses, and reads only the first bytes from each. */
  async function slowClients(count: number, clock: Clock = systemClock) {
    const app = await openApp(clock);
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const ask = (localAddress: string) =>
      new Promise<{ status: number; retryAfter: string | undefined; ended: Promise<void>; drop: () => void }>(
        (resolve, reject) => {
          const download = request(
            { host: '127.0.0.1', port, path: `/install/${deb}`, localAddress, agent: false },
            (answer) => {
              answer.pause();
              answer.on('error', () => {});
              const ended = new Promise<void>((end) => answer.once('close', end));
              const { statusCode = 0, headers } = answer;
              resolve({
                status: statusCode,
                retryAfter: headers['retry-after'],
                ended,
                drop: () => download.destroy(),
              });
            },
          );
          download.on('error', reject);
          download.end();
        },
      );
    const clients = await Promise.all(
      Array.from({ length: count }, (_, index) => ask(`127.0.1.${1 + Math.floor(index / 4)}`)),
    );
    return { app, ask, clients };
  }

  test('limits simultaneous transfers, makes other clients retry, and reuses free slots', async () => {
    const { app, ask, clients } = await slowClients(40);
    const statuses = clients.map(({ status }) => status).sort();
    expect(statuses.filter((status) => status === 200)).toHaveLength(24);
    expect(statuses.filter((status) => status === 429)).toHaveLength(16);
    expect(clients.find(({ status }) => status === 429)?.retryAfter).toBe('5');
    // Neither the script nor the API counts toward the limit.
    expect((await app.inject('/install/agent.sh')).statusCode).toBe(200);
    expect((await app.inject('/api/v1/status')).statusCode).toBe(200);
    for (const { drop } of clients) drop();
    await expect
      .poll(async () => {
        const next = await ask('127.0.0.1');
        next.drop();
        return next.status;
      })
      .toBe(200);
    app.server.closeAllConnections();
    await app.close();
  });

  test('limits the simultaneous transfers to one address', async () => {
    const { app, ask, clients } = await slowClients(0);
    const own = await Promise.all(Array.from({ length: 12 }, () => ask('127.0.0.1')));
    expect(own.filter(({ status }) => status === 200)).toHaveLength(8);
    expect((await ask('127.0.0.2')).status).toBe(200);
    expect(clients).toEqual([]);
    app.server.closeAllConnections();
    await app.close();
  });

  test('aborts a transfer that makes no progress', async () => {
    const looks: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      after: (ms, action) => {
        if (ms !== 15_000) return systemClock.after(ms, action);
        looks.push(action);
        return () => {};
      },
    };
    const { app, ask } = await slowClients(0, clock);
    const stuck = await ask('127.0.0.1');
    expect(stuck.status).toBe(200);
    // The first check detects progress, because the first data fits into the socket buffers.
    await expect.poll(() => looks.length).toBe(1);
    looks[0]?.();
    looks[1]?.();
    stuck.drop();
    await stuck.ended;
    app.server.closeAllConnections();
    await app.close();
  });
});
