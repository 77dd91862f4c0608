import { get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { MusterError } from '@muster/protocol';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { bearer, keepingLog, testApp } from '../../../test/app-fixture.ts';
import { sampleAt } from '../../../test/samples.ts';
import type { AgentStanding } from '../../domain/fleet/metrics.ts';
import { exposeAgents } from './agent-exposition.ts';

const token = 'scrape-token-0123456789';
const node = (n: number) => n.toString(16).padStart(32, '0');
const full = sampleAt(1_800_000_000, {
  cpu_usage: 12.5,
  memory_total: 8_589_934_592,
  memory_used: 2_147_483_648,
  swap_used: 0,
  disk_total: 9_007_199_254_740_991,
  disk_used: 32_212_254_720,
  load1: 0.42,
  net_rx_bytes: 123_456_789,
  net_tx_bytes: 98_765_432,
  processes: 143,
  uptime: 864_000,
});
const standing = (n: number, more: Partial<AgentStanding> = {}): AgentStanding => ({
  node_id: node(n),
  name: `web-${n}`,
  connected: true,
  sample: full,
  ...more,
});

const textOf = async (agents: readonly AgentStanding[]) => {
  let text = '';
  for await (const piece of exposeAgents(agents)) text += piece;
  return text;
};
const linesOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

function scraped(agents: (filter: string | undefined) => Promise<readonly AgentStanding[]>) {
  const { log, lines } = keepingLog();
  const app = testApp(
    {},
    {
      log,
      telemetry: { answered: () => {}, scrape: async () => ({ type: 'text/plain', body: '' }), agents, token },
    },
  );
  apps.push(app);
  const scrape = (headers: Record<string, string> = {}, query = '') =>
    app.inject({ url: `/metrics/agents${query}`, headers: { authorization: `Bearer ${token}`, ...headers } });
  return { app, scrape, lines };
}

describe('exposition text', () => {
  test('writes help, type, and one line per agent for each metric, in base units', async () => {
    const labels = `{node_id="${node(1)}",name="web-1"}`;
    const text = await textOf([standing(1)]);
    expect(linesOf(text)).toEqual([
      `muster_agent_up${labels} 1`,
      `muster_agent_sample_timestamp_seconds${labels} 1800000000`,
      `muster_agent_cpu_usage_ratio${labels} 0.125`,
      `muster_agent_memory_size_bytes${labels} 8589934592`,
      `muster_agent_memory_used_bytes${labels} 2147483648`,
      `muster_agent_swap_used_bytes${labels} 0`,
      `muster_agent_disk_size_bytes${labels} 9007199254740991`,
      `muster_agent_disk_used_bytes${labels} 32212254720`,
      `muster_agent_load1${labels} 0.42`,
      `muster_agent_network_receive_bytes_total${labels} 123456789`,
      `muster_agent_network_transmit_bytes_total${labels} 98765432`,
      `muster_agent_processes${labels} 143`,
      `muster_agent_uptime_seconds${labels} 864000`,
    ]);
    expect(text).toMatch(/^# TYPE muster_agent_up gauge$/m);
    expect(text).toMatch(/^# TYPE muster_agent_network_receive_bytes_total counter$/m);
    expect(text.match(/^# HELP /gm)).toHaveLength(13);
    expect(text.endsWith('\n')).toBe(true);
  });

  test('omits missing values instead of writing zeros', async () => {
    const text = await textOf([
      standing(1, { sample: sampleAt(1_800_000_000, { load1: 0 }) }),
      standing(2, { sample: null, connected: false }),
    ]);
    expect(linesOf(text)).toEqual([
      `muster_agent_up{node_id="${node(1)}",name="web-1"} 1`,
      `muster_agent_up{node_id="${node(2)}",name="web-2"} 0`,
      `muster_agent_sample_timestamp_seconds{node_id="${node(1)}",name="web-1"} 1800000000`,
      `muster_agent_load1{node_id="${node(1)}",name="web-1"} 0`,
    ]);
  });

  test('keeps a metric’s lines together, and escapes agent names', async () => {
    const text = await textOf([
      standing(1, { name: 'a"} 1\nevil{x="\\' }),
      ...Array.from({ length: 2500 }, (_, n) => standing(n + 2)),
    ]);
    expect(text).toContain('name="a\\"} 1\\nevil{x=\\"\\\\"} ');
    const names = linesOf(text).map((line) => line.slice(0, line.indexOf('{')));
    expect(names).toHaveLength(13 * 2501);
    const runs = names.filter((name, index) => name !== names[index - 1]);
    expect(runs).toHaveLength(13);
  });

  test('writes metrics for ten thousand agents in several event-loop turns', async () => {
    let inTurn = 0;
    let most = 0;
    const count = () => {
      most = Math.max(most, ++inTurn);
    };
    const agents = Array.from({ length: 10_000 }, (_, n) => ({
      ...standing(n),
      get name() {
        count();
        return `web-${n}`;
      },
      get sample() {
        count();
        return full;
      },
    }));
    let running = true;
    const startTurn = () => {
      inTurn = 0;
      if (running) setImmediate(startTurn);
    };
    startTurn();
    let pieces = 0;
    for await (const piece of exposeAgents(agents)) pieces += piece.length > 0 ? 1 : 0;
    running = false;
    expect(most).toBeLessThanOrEqual(2 * 1000);
    expect(pieces).toBeGreaterThanOrEqual(13 * 10);
  });
});

describe('metrics endpoint', () => {
  test('requires the scrape token or a session for agent metrics, and filters agents with a selector', async () => {
    const filters: (string | undefined)[] = [];
    const { app, scrape } = scraped(async (filter) => {
      filters.push(filter);
      if (filter === '==') throw new MusterError('selector_invalid', 'column 1');
      return [standing(1)];
    });
    const answer = await scrape();
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(linesOf(answer.body)).toHaveLength(13);
    expect((await scrape(bearer('operator'), '?filter=role%3Dweb')).statusCode).toBe(200);
    expect(filters).toEqual([undefined, 'role=web']);
    for (const authorization of ['', 'Bearer no', `Bearer ${token}x`])
      expect((await scrape({ authorization })).statusCode, authorization).toBe(401);
    expect((await scrape({}, '?filter===')).json()).toMatchObject({ status: 400, code: 'selector_invalid' });
    for (const query of ['?fliter=a', '?filter=a&filter=b', '?filter=%'])
      expect((await scrape({}, query)).statusCode, query).toBe(400);
    expect(filters).toHaveLength(3);
    // Agent metrics appear only at `/metrics/agents`.
    const whole = await app.inject({ url: '/metrics', headers: { authorization: `Bearer ${token}` } });
    expect(whole.body).not.toContain('node_id');
  });

  test('compresses metrics with gzip for clients that accept it', async () => {
    const { scrape } = scraped(async () => Array.from({ length: 3000 }, (_, n) => standing(n)));
    const plain = await scrape();
    for (const accepted of ['gzip', 'deflate, gzip;q=0.5', 'GZIP ; q=1']) {
      const answer = await scrape({ 'accept-encoding': accepted });
      expect(answer.headers['content-encoding'], accepted).toBe('gzip');
      expect(answer.rawPayload.length).toBeLessThan(plain.rawPayload.length / 5);
      expect(gunzipSync(answer.rawPayload).toString()).toBe(plain.body);
    }
    for (const refused of ['identity', 'gzip;q=0', 'gzip; q=0.0', 'xgzip'])
      expect((await scrape({ 'accept-encoding': refused })).headers['content-encoding'], refused).toBeUndefined();
  });

  test('stops writing metrics when the client disconnects', async () => {
    let reads = 0;
    const count = 20_000;
    const agents = Array.from({ length: count }, (_, n) => ({
      ...standing(n),
      get sample() {
        reads++;
        return full;
      },
    }));
    const { app, lines } = scraped(async () => agents);
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    for (const coding of ['gzip', 'identity'])
      for (let time = 0; time < 3; time++)
        await new Promise<void>((resolve) => {
          const headers = { authorization: `Bearer ${token}`, 'accept-encoding': coding };
          const request = get({ host: '127.0.0.1', port, path: '/metrics/agents', headers }, (response) => {
            response.once('data', () => request.destroy());
            response.on('error', () => {}).on('close', resolve);
          });
          request.on('error', () => {});
        });
    const whole = await app.inject({ url: '/metrics/agents', headers: { authorization: `Bearer ${token}` } });
    expect(linesOf(whole.body)).toHaveLength(13 * count);
    expect(reads).toBeLessThan(12 * count * 3);
    expect(lines.filter(({ msg }) => msg === 'response aborted')).toEqual([]);
  });
});
