import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Behaviour, type FarEnd, farEnd } from '../../test/far-end.ts';
import { pointsOf, readWriteRequest } from '../../test/remote-write-message.ts';
import { sampleAt } from '../../test/samples.ts';
import { type Credentials, createRemoteWrite } from './remote-write.ts';

const node = 'ab'.repeat(16);
const at = 1_800_000_000;
const limits = { timeoutMs: 5_000 };
const directory = mkdtempSync(join(tmpdir(), 'muster-remote-write-'));
const file = (name: string) => join(directory, name);

const ends: FarEnd[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end.close();
  rmSync(file('token'), { force: true });
});

async function far(behaviour: Behaviour = 204) {
  const end = await farEnd(behaviour);
  ends.push(end);
  return end;
}
const writing = (url: string, credentials: Credentials = null, denyPrivate = false) =>
  createRemoteWrite({ url, credentials, denyPrivate, version: '1.2.3' });

describe('a request', () => {
  test('sends each metric as one series with all its points, and omits missing values', async () => {
    const end = await far();
    const first = sampleAt(at, { cpu_usage: 12.5, memory_total: 2 ** 53 - 1, load1: 0, uptime: 60 });
    const second = sampleAt(at + 30, { cpu_usage: 25, disk_used: 7 });
    const outcome = await writing(end.url)(
      [
        { nodeId: node, name: 'web-1', samples: [first, second] },
        { nodeId: 'cd'.repeat(16), name: null, samples: [sampleAt(at, { net_rx_bytes: 5 })] },
      ],
      limits,
    );
    expect(outcome).toEqual({ status: 204, retryAfterMs: null });
    const [request] = end.arrived;
    expect(request?.method).toBe('POST');
    expect(request?.headers).toMatchObject({
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
      'user-agent': 'Muster/1.2.3',
    });
    expect(request?.headers.authorization).toBeUndefined();
    const of = `{job="muster-agents",name="web-1",node_id="${node}"}`;
    expect(pointsOf(request!.bytes)).toEqual({
      [`muster_agent_cpu_usage_ratio${of}`]: [
        [at * 1000, 0.125],
        [(at + 30) * 1000, 0.25],
      ],
      [`muster_agent_memory_size_bytes${of}`]: [[at * 1000, 2 ** 53 - 1]],
      [`muster_agent_load1${of}`]: [[at * 1000, 0]],
      [`muster_agent_uptime_seconds${of}`]: [[at * 1000, 60]],
      [`muster_agent_disk_used_bytes${of}`]: [[(at + 30) * 1000, 7]],
      [`muster_agent_network_receive_bytes_total{job="muster-agents",node_id="${'cd'.repeat(16)}"}`]: [[at * 1000, 5]],
    });
    for (const { labels } of readWriteRequest(request!.bytes)) {
      const names = labels.map(({ name }) => name);
      expect(names).toEqual(names.toSorted());
    }
  });

  test('reads the credentials from their files for each request', async () => {
    const end = await far();
    const batch = [{ nodeId: node, name: 'web-1', samples: [sampleAt(at, { load1: 1 })] }];
    const token = writing(end.url, { bearerTokenFile: file('token') });
    expect(await token(batch, limits)).toMatchObject({
      status: null,
      reason: expect.stringContaining('the credentials cannot be read: ENOENT'),
    });
    for (const secret of ['first', 'second']) {
      writeFileSync(file('token'), `${secret}\n`);
      await token(batch, limits);
    }
    await writing(end.url, { username: 'ada', passwordFile: file('token') })(batch, limits);
    await writing(end.url.replace('//', '//bob:p%40ss@'))(batch, limits);
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    expect(end.arrived.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
      basic('ada:second'),
      basic('bob:p@ss'),
    ]);
  });

  test('returns the beginning of an error response as the reason', async () => {
    const end = await far((response) => response.writeHead(400, { 'retry-after': '7' }).end('out of order sample'));
    const batch = [{ nodeId: node, name: 'web-1', samples: [sampleAt(at, { load1: 1 })] }];
    const write = writing(end.url);
    expect(await write(batch, limits)).toEqual({ status: 400, retryAfterMs: 7000, text: 'out of order sample' });
    end.behave((response) => response.writeHead(500).end('x'.repeat(100_000)));
    expect(await write(batch, limits)).toEqual({ status: 500, retryAfterMs: null, text: 'x'.repeat(512) });
    // The server sends headers and the beginning of an endless body.
    end.behave((response) => response.writeHead(404).write('half'));
    expect(await write(batch, limits)).toEqual({ status: 404, retryAfterMs: null, text: 'half' });
  });

  test('refuses blocked addresses, and private addresses if they are denied', async () => {
    const end = await far();
    const batch = [{ nodeId: node, name: 'web-1', samples: [sampleAt(at, { load1: 1 })] }];
    expect(await writing(end.url, null, true)(batch, limits)).toMatchObject({
      status: null,
      reason: '127.0.0.1 is a blocked address',
    });
    expect(await writing('http://169.254.169.254/api/v1/write')(batch, limits)).toMatchObject({ status: null });
    expect(end.arrived).toEqual([]);
  });
});
