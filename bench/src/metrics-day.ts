import { once } from 'node:events';
import { statSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { systemClock } from '../../lib/src/clock.ts';
import { openDatabase } from '../../orchestrator/src/store/open-database.ts';
import { openSamples } from '../../orchestrator/src/store/samples/open-samples.ts';
import { dialAsAgent, type TestAgent } from '../../orchestrator/test/test-agent.ts';
import { SampleLoad } from './load/sample-load.ts';
import { seedAgentsInto } from './load/seed-agents.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { quantile } from './run/quantiles.ts';
import { table } from './run/report.ts';
import { benchDatabase } from './servers/bench-database.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Measures a day of samples, one a minute for each agent: the disk space that they use, and the latency of reads over
 * HTTPS from a real orchestrator while samples arrive from as many agents. The results are not judged; use them to size
 * a machine.
 *
 *     node bench/src/metrics-day.ts [--agents 1000] [--hours 24] [--requests 300] [--database sqlite|postgres] [--json]
 */
const options = benchOptions({
  numbers: { agents: [1000, 500], hours: [24, 0.05], requests: [300, 6] },
  texts: { database: 'sqlite' },
});
const count = options.agents;
const minutes = 60 * options.hours;
const everySecs = 60;
/** Number of minutes whose samples are written concurrently, to save time. */
const minutesAtOnce = 10;
/** Seconds. More than a day, so that no sample expires during the measurement. */
const retentionSecs = 90_000;
/** Number of links that together send as many samples as all agents would. */
const links = 20;

const token = 'bench-scrape-token-01234';
process.env.MUSTER_METRICS_TOKEN = token;
// Seconds. Long, so that the scrape does not omit the seeded samples as stale.
process.env.MUSTER_METRICS_POLL_INTERVAL = '3600';
process.env.MUSTER_METRICS_RETENTION = String(retentionSecs);
const database = await benchDatabase(options.database);
const load = new SampleLoad(count);
const fatal = (reason: Error) => {
  throw reason;
};

/** Writes a day's samples. @returns bytes on disk, and seconds that the writes took */
async function seed(dataDir: string): Promise<{ bytes: number; secs: number }> {
  const location = {
    file: join(dataDir, 'muster.db'),
    postgres: database.url === null ? null : { url: database.url, poolSize: 4, statementTimeout: 30, replica: null },
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const db = await openDatabase(location, { now: () => Date.now(), onFatal: fatal, onMigrated() {}, log });
  await seedAgentsInto(db, count);
  await db.close();
  const store = await openSamples(location, dataDir, retentionSecs, { clock: systemClock, log });
  const end = Math.floor(Date.now() / 1000);
  const began = performance.now();
  for (let minute = minutes - 1; minute >= 0; minute -= minutesAtOnce) {
    const adding: Promise<void>[] = [];
    for (let at = minute; at > Math.max(-1, minute - minutesAtOnce); at--)
      // Each agent takes its samples at a different second of the minute.
      for (const [n, node] of load.nodes.entries())
        adding.push(store.add(node, [load.sample(n, end - at * everySecs - (n % everySecs))]));
    await Promise.all(adding);
  }
  const secs = (performance.now() - began) / 1000;
  await store.close();
  printProgress(`samples of ${options.hours} h written`);
  return { bytes: await bytesOf(dataDir), secs };
}

async function bytesOf(dataDir: string): Promise<number> {
  if (database.url === null) return statSync(join(dataDir, 'metrics.db')).size;
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(inhrelid)) as bytes from pg_inherits where inhparent = 'samples'::regclass`,
  );
  await client.end();
  return Number(rows[0]!.bytes);
}

/**
 * Starts sending samples at the combined rate of all agents. The samples on a link have different seconds, as the API
 * requires.
 */
async function arriving(
  orchestrator: OrchestratorProcess,
): Promise<{ failed: Promise<never>; stop(): Promise<number> }> {
  const enrolment = await orchestrator.enrolmentToken(links);
  const agents: TestAgent[] = [];
  for (let n = 0; n < links; n++) {
    const agent = await dialAsAgent(orchestrator.address.port);
    await agent.join({ token: enrolment, hostname: `sender-${n}` });
    agents.push(agent);
  }
  let stopped = false;
  let sent = 0;
  const start = Math.floor(Date.now() / 1000) - 80_000;
  const each = async (agent: TestAgent, n: number) => {
    await sleep((n * everySecs * 1000) / count);
    for (let at = start; !stopped; at++) {
      const due = sleep((links * everySecs * 1000) / count);
      agent.send({ type: 'metrics', samples: [load.sample(n, at)] });
      await agent.next('metrics_stored');
      sent++;
      await due;
    }
  };
  const running = Promise.all(agents.map(each));
  // Rejects as soon as a link fails, because `stop` alone would report the failure too late.
  const failed = new Promise<never>((_, reject) => running.catch(reject));
  failed.catch(() => {});
  return {
    failed,
    async stop() {
      stopped = true;
      await running;
      for (const agent of agents) agent.end();
      return sent;
    },
  };
}

let seeded = { bytes: 0, secs: 0 };
const orchestrator = await OrchestratorProcess.start({
  prepare: async (dataDir) => {
    seeded = await seed(dataDir);
  },
  databaseUrl: database.url,
});
const [session = ''] = await orchestrator.sessions(1);
const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: orchestrator.certificate });

async function get(
  path: string,
  bearer: string,
  encoding?: string,
): Promise<{ ms: number; bytes: number; status: number }> {
  const began = performance.now();
  const headers = { authorization: `Bearer ${bearer}`, ...(encoding ? { 'accept-encoding': encoding } : {}) };
  const outgoing = request(new URL(path, orchestrator.url), { agent, headers, checkServerIdentity: () => undefined });
  outgoing.end();
  const [answer] = await once(outgoing, 'response');
  let bytes = 0;
  for await (const piece of answer) bytes += piece.length;
  return { ms: performance.now() - began, bytes, status: answer.statusCode };
}

const dayOf = (n: number) => `/api/v1/agents/${load.nodes[(n * 37) % count]}/metrics`;
const many = options.requests;
const few = Math.ceil(many / 6);
const requests: [what: string, times: number, path: (n: number) => string, bearer: string, encoding?: string][] = [
  ['GET /healthz, for comparison', many, () => '/healthz', session],
  ['latest sample of one agent', many, (n) => `${dayOf(n)}/latest`, session],
  ['one day of one agent', many, dayOf, session],
  ['one day of one agent, step 300 s', many, (n) => `${dayOf(n)}?step=300`, session],
  ['latest samples of all agents', 2 * few, () => '/api/v1/metrics/latest', session],
  ['Prometheus scrape of all agents', few, () => '/metrics/agents', token],
  ['the same, compressed', few, () => '/metrics/agents', token, 'gzip'],
];
try {
  const senders = await arriving(orchestrator);
  const rows = [];
  for (const [what, times, path, bearer, encoding] of requests) {
    const took: number[] = [];
    let bytes = 0;
    for (let n = -5; n < times; n++) {
      const { ms, bytes: size, status } = await Promise.race([get(path(n + 5), bearer, encoding), senders.failed]);
      if (status !== 200) throw new Error(`GET ${path(n)} returned ${status}`);
      if (n >= 0) took.push(ms);
      bytes = size;
    }
    printProgress(`${what}: p99 ${quantile(took, 0.99).toFixed(1)} ms`);
    rows.push([what, times, bytes / 1024, quantile(took, 0.5), quantile(took, 0.99)]);
  }
  const sent = await senders.stop();
  const samples = count * minutes;
  console.log(
    `${options.database}: ${count} agents, ${options.hours} h with one sample a minute, ${sent} samples stored during the reads`,
  );
  console.log(
    table(
      ['on disk', 'value'],
      [
        ['samples', samples],
        ['MiB', seeded.bytes / 1024 / 1024],
        ['bytes per sample', seeded.bytes / samples],
        ['samples stored per second', samples / seeded.secs],
      ],
    ),
  );
  console.log(table(['read', 'count', 'KiB', 'p50 ms', 'p99 ms'], rows as never));
  const sizes = `${options.database}, ${count} agents, ${options.hours} h`;
  process.exitCode = conclude('metrics-day', { sizes, figures: {} });
} finally {
  agent.destroy();
  await orchestrator.stop();
  await database.stop();
}
