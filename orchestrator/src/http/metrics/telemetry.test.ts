import { setTimeout as sleep } from 'node:timers/promises';
import { agentExample, nodeExample } from '@muster/protocol/http';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { bearer, testApp } from '../../../test/app-fixture.ts';
import { requestFields } from '../../request-fields.ts';
import type { Levels } from './level-gauges.ts';
import { createTelemetry } from './telemetry.ts';

const levels: Levels = {
  connectedAgents: 3,
  dispatchQueue: 2,
  dispatchBytes: 1024,
  database: { queued: 5, queuedBytes: 500, unitsCommitted: 70, unitsFailed: 1, retries: 0 },
  disk: { size: 1000, free: 31, reserve: 32, low: true },
  recordedBytes: 123,
  connections: { api: { open: 31, dropped: { share: 32, full: 33 } }, agentsDropped: 34 },
  samples: { queued: 4, stored: 900, failed: 6, passedOver: 9 },
  remoteWrite: { queued: 21, sent: 22, overflowed: 23, refused: 24, passedOver: 25, retries: 26 },
  bus: { isConnected: true, sent: 41, received: 42, dropped: 43, gaps: 44, ignored: { forged: 45 } },
  replica: {
    states: ['ready', 'draining', 'ready'],
    troubles: ['missing', 'version'],
    isDraining: true,
    heartbeatAgeSecs: 1.5,
    closed: 51,
    leases: { held: 52, lost: 53 },
  },
};
const census = {
  agents: { pending: 1, approved: 7, rejected: 0 },
  operations: { queued: 11, running: 2 },
  terminals: 0,
  deliveries: 8,
  unplacedEvents: 12,
};
const token = 'scrape-token-0123456789';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

function scraped({ token: given = token as string | null, healthy = true } = {}) {
  const telemetry = createTelemetry();
  const sources = { census: async () => census, ready: () => healthy, levels: () => levels };
  const app = testApp(
    { getAgent: () => agentExample },
    { telemetry: { answered: telemetry.answered, scrape: () => telemetry.scrape(sources), token: given } },
  );
  apps.push(app);
  const scrape = (authorization?: string) =>
    app.inject({ url: '/metrics', headers: authorization === undefined ? {} : { authorization } });
  return { telemetry, app, scrape };
}

/** Parses an exposition. @returns values by metric name and labels */
const linesOf = (body: string) =>
  new Map(
    body
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );

describe('access to metrics', () => {
  test('refuses metrics without the scrape token or a sign-in session', async () => {
    const { scrape } = scraped();
    expect((await scrape(`Bearer ${token}`)).statusCode).toBe(200);
    expect((await scrape(bearer('operator').authorization)).statusCode).toBe(200);
    for (const other of [undefined, 'Bearer no', `Bearer ${token}x`, `Bearer ${token.slice(1)}`, `Basic ${token}`]) {
      const answer = await scrape(other);
      expect(answer.statusCode, other).toBe(401);
      expect(answer.json()).toMatchObject({ code: 'unauthenticated' });
    }
  });

  test('refuses metrics without a sign-in session if no token is configured', async () => {
    const { scrape } = scraped({ token: null });
    expect((await scrape(`Bearer ${token}`)).statusCode).toBe(401);
    expect((await scrape('Bearer null')).statusCode).toBe(401);
    expect((await scrape(bearer('admin').authorization)).statusCode).toBe(200);
  });

  test('refuses the scrape token at other paths', async () => {
    const { app } = scraped();
    const answer = await app.inject({ url: '/api/v1/agents', headers: { authorization: `Bearer ${token}` } });
    expect(answer.statusCode).toBe(401);
  });
});

describe('metrics', () => {
  test('reports levels and totals in the Prometheus format', async () => {
    const { telemetry, scrape } = scraped();
    telemetry.committed(12, 0.004);
    telemetry.operationEnded('succeeded');
    await scrape(`Bearer ${token}`);
    const answer = await scrape(`Bearer ${token}`);
    expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    const lines = linesOf(answer.body);
    expect(Object.fromEntries(lines)).toMatchObject({
      'muster_agents{status="approved"}': 7,
      'muster_agents{status="pending"}': 1,
      'muster_agents{status="rejected"}': 0,
      'muster_operations{status="queued"}': 11,
      'muster_operations{status="running"}': 2,
      'muster_operations_ended_total{status="succeeded"}': 1,
      muster_outbox_deliveries: 8,
      muster_audit_unplaced_events: 12,
      muster_terminals: 0,
      muster_ready: 1,
      muster_disk_size_bytes: 1000,
      muster_disk_free_bytes: 31,
      muster_disk_reserve_bytes: 32,
      muster_disk_low: 1,
      muster_api_connections: 31,
      'muster_connections_dropped_total{port="api",reason="share"}': 32,
      'muster_connections_dropped_total{port="api",reason="full"}': 33,
      'muster_connections_dropped_total{port="agents",reason="full"}': 34,
      muster_agents_connected: 3,
      muster_dispatch_queue: 2,
      muster_write_queue_units: 5,
      muster_writes_total: 70,
      muster_writes_failed_total: 1,
      muster_terminal_recorded_bytes_total: 123,
      muster_samples_total: 900,
      muster_samples_passed_over_total: 9,
      muster_remote_write_queue: 21,
      muster_remote_write_samples_total: 22,
      'muster_remote_write_dropped_total{reason="overflow"}': 23,
      'muster_remote_write_dropped_total{reason="refused"}': 24,
      'muster_remote_write_dropped_total{reason="out_of_order"}': 25,
      muster_remote_write_retries_total: 26,
      muster_bus_connected: 1,
      'muster_bus_messages_total{direction="sent"}': 41,
      'muster_bus_messages_total{direction="received"}': 42,
      muster_bus_dropped_total: 43,
      muster_bus_gaps_total: 44,
      'muster_bus_ignored_total{reason="forged"}': 45,
      'muster_replicas{state="ready"}': 2,
      'muster_replicas{state="not_ready"}': 0,
      'muster_replicas{state="draining"}': 1,
      'muster_replica_troubles{trouble="missing"}': 1,
      'muster_replica_troubles{trouble="version"}': 1,
      'muster_replica_troubles{trouble="configuration"}': 0,
      muster_replica_draining: 1,
      muster_replica_heartbeat_age_seconds: 1.5,
      muster_replicas_closed_total: 51,
      muster_leases_held: 52,
      muster_leases_lost_total: 53,
      muster_commit_units_sum: 12,
      'muster_commit_seconds_bucket{le="0.005"}': 1,
    });
  });

  test('counts requests by route and status class, with a bounded number of series for arbitrary paths', async () => {
    const { app, scrape } = scraped();
    const headers = bearer('operator');
    for (let n = 0; n < 50; n++) {
      await app.inject({ url: `/api/v1/agents/${nodeExample}`, headers });
      await app.inject({ url: `/api/v1/agents/x${n}?y=${n}`, headers });
      await app.inject({ url: `/api/v1/nothing/${n}`, headers });
      await app.inject({ url: `/${n}` });
    }
    const counts = [...linesOf((await scrape(`Bearer ${token}`)).body)].filter(([name]) =>
      name.startsWith('muster_http_request_seconds_count'),
    );
    expect(Object.fromEntries(counts)).toEqual({
      'muster_http_request_seconds_count{route="getAgent",status="2xx"}': 50,
      'muster_http_request_seconds_count{route="getAgent",status="4xx"}': 50,
      'muster_http_request_seconds_count{route="other",status="4xx"}': 100,
    });
  });

  test('reports that the process is not ready, and omits counts, while the database is not responding', async () => {
    const sources = { census: async () => null, ready: () => false, levels: () => levels };
    const lines = linesOf((await createTelemetry().scrape(sources)).body);
    expect(lines.get('muster_ready')).toBe(0);
    expect([...lines.keys()].filter((name) => name.startsWith('muster_agents{'))).toEqual([]);
  });
});

describe('request ids', () => {
  test('keeps a valid request ID and replaces an invalid one', async () => {
    const { app } = scraped();
    const idOf = async (sent: string | undefined) => {
      const answer = await app.inject({
        url: '/api/v1/agents',
        headers: sent === undefined ? {} : { 'x-request-id': sent },
      });
      expect(answer.json().instance).toBe(answer.headers['x-request-id']);
      return answer.headers['x-request-id'];
    };
    for (const good of ['a', '5f0c1a2b-3c4d.X_1', 'x'.repeat(64)]) expect(await idOf(good)).toBe(good);
    for (const bad of [undefined, '', '-a', 'a b', 'a\tb', '{"a":1}', 'ä', 'x'.repeat(65)])
      expect(await idOf(bad), bad).toMatch(/^[0-9a-f]{12}-[0-9a-z]+$/);
  });

  test('logs the request ID for requests with a body and after asynchronous calls', async () => {
    const lines: Record<string, unknown>[] = [];
    const log = pino({ mixin: requestFields }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const app = testApp({
      setAgentStatus: async () => {
        log.info('at once');
        await sleep(5);
        log.info('later');
        return agentExample;
      },
    });
    apps.push(app);
    const send = (id: string) =>
      app.inject({
        method: 'POST',
        url: `/api/v1/agents/${nodeExample}`,
        headers: { ...bearer('admin'), 'x-request-id': id },
        payload: { status: 'approved' },
      });
    await Promise.all([send('one'), send('two')]);
    log.info('nobody asked');
    const seen = lines.map(({ msg, request_id }) => `${msg} ${request_id}`);
    expect(seen).toEqual(['at once one', 'at once two', 'later one', 'later two', 'nobody asked undefined']);
  });
});
