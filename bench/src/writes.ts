import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import type { Database } from '../../orchestrator/src/store/database.ts';
import { migrations } from '../../orchestrator/src/store/migrations/index.ts';
import { defineQuery } from '../../orchestrator/src/store/query.ts';
import { migrateSqlite } from '../../orchestrator/src/store/sqlite/migrate-sqlite.ts';
import { openSqlite } from '../../orchestrator/src/store/sqlite/sqlite.ts';
import { configureSqlite, openSqliteFile } from '../../orchestrator/src/store/sqlite/sqlite-connection.ts';
import { statement } from '../../orchestrator/src/store/transaction.ts';
import { conclude } from './run/conclude.ts';
import { LoopDelay } from './run/loop-delay.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { type Quantiles, quantiles } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { scratchDirectory } from './run/scratch.ts';

/**
 * Measures committed transactions per second and their effect on the event loop, with the real disk and with syncs that
 * take 8 ms longer. Compares them with better-sqlite3 on the main thread with one transaction for each write, and with
 * an idle event loop, which shows the effect of other load on the machine. A write is the database work of one agent
 * report: a check, an update, and an event. Loads at a fixed rate run in rounds, in which the contenders take turns;
 * the round with the median p99 of the loop delay counts.
 *
 *     node bench/src/writes.ts [--seconds 3] [--rounds 3] [--rate 500] [--slow-sync 8] [--directory DIR] [--json]
 */
const options = benchOptions({
  numbers: { seconds: [3, 0.1], rounds: [3, 1], rate: [500, 500], 'slow-sync': [8, 8] },
  texts: { directory: null },
});
const { seconds, rounds, rate, 'slow-sync': slowSyncMs } = options;
const agents = 100;

/** A way to write to a database. */
interface Contender {
  readonly name: string;
  /** Number of concurrent writes at saturation; 1 if the contender cannot group writes in a commit. */
  readonly inFlight: number;
  /** Resolves when the n-th write is durable. */
  write(n: number): Promise<unknown>;
  close(): Promise<void>;
}

const addAgent = defineQuery('bench/agent', (db, p: { node_id: string }) =>
  db.insertInto('agents').values({
    node_id: p.node_id,
    public_key: p.node_id,
    name: null,
    status: 'approved',
    agent_version: '0',
    attributes: '{}',
    initial_hostname: '',
    initial_ip: '',
    connected_at: 0,
    updated_at: 0,
    last_seen_at: 0,
    pin_source: '',
    enrolment_token_id: null,
    first_seen_at: 0,
  }),
);
const approved = defineQuery('bench/approved', (db, p: { node_id: string }) =>
  db.selectFrom('agents').select('node_id').where('node_id', '=', p.node_id).where('status', '=', 'approved'),
);
const seen = defineQuery('bench/seen', (db, p: { node_id: string; at: number }) =>
  db.updateTable('agents').set({ last_seen_at: p.at }).where('node_id', '=', p.node_id),
);
const addEvent = defineQuery('bench/event', (db, p: { id: string; at: number; node_id: string }) =>
  db.insertInto('audit_events').values({
    id: p.id,
    event_type: 'agent.connected',
    category: 'test',
    severity: 'info',
    timestamp_ms: p.at,
    actor_type: 'agent',
    actor_id: p.node_id,
    actor_name: '',
    target_type: 'agent',
    target_id: p.node_id,
    target_name: '',
    summary: 'The agent has connected',
    metadata: '{}',
  }),
);

const agentOf = (n: number) => `node-${n % agents}`;

async function addAgents(database: Database): Promise<void> {
  await database.write({
    name: 'bench/agents',
    statements: Array.from({ length: agents }, (_, n) => statement(addAgent, { node_id: agentOf(n) })),
  });
}

async function muster(file: string, delayMs: number): Promise<Contender> {
  const database = await openSqlite({
    file,
    now: () => 1,
    onFatal: (reason) => {
      throw reason;
    },
    commitDelayMs: delayMs,
  });
  await addAgents(database);
  return {
    name: 'Muster, writer thread',
    inFlight: 2_000,
    write: (n) => {
      const node_id = agentOf(n);
      return database.write({
        name: 'bench/report',
        statements: [
          statement(approved, { node_id }, { expect: 'row', else: 'agent_not_approved' }),
          statement(seen, { node_id, at: n }, { expect: 'changed', else: 'agent_not_found' }),
          statement(addEvent, { id: `event-${n}`, at: n, node_id }),
        ],
      });
    },
    close: () => database.close(),
  };
}

async function plain(file: string, delayMs: number): Promise<Contender> {
  migrateSqlite(file, { migrations, now: () => 1 });
  const db = openSqliteFile(file);
  configureSqlite(db);
  const text = (query: typeof approved | typeof seen | typeof addEvent | typeof addAgent) =>
    db.prepare<unknown[]>(query.compiled('sqlite').sql);
  const [check, update, insert, agent] = [text(approved), text(seen), text(addEvent), text(addAgent)];
  for (let n = 0; n < agents; n++) agent.run(agentOf(n), agentOf(n));
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const transaction = db.transaction((n: number) => {
    const node_id = agentOf(n);
    if (!check.get(node_id)) throw new Error('not approved');
    if (update.run(n, node_id).changes === 0) throw new Error('not found');
    insert.run(`event-${n}`, n, node_id, node_id);
    if (delayMs > 0) Atomics.wait(sleeper, 0, 0, delayMs);
  });
  return {
    name: 'one write per transaction, main thread',
    inFlight: 1,
    write: async (n) => transaction(n),
    close: async () => void db.close(),
  };
}

/** A contender that writes nothing, which shows the effect of other load on the machine. */
async function nothing(): Promise<Contender> {
  return { name: 'no writes', inFlight: 1, write: async () => undefined, close: async () => undefined };
}

interface Measured {
  readonly perSecond: number;
  readonly latency: Quantiles;
  readonly loop: Quantiles;
}

/** Measures a contender. @param perSecond number of writes to start per second; null for as many as possible */
async function measure(contender: Contender, perSecond: number | null): Promise<Measured> {
  let next = 0;
  const latencies: number[] = [];
  const one = async () => {
    const started = performance.now();
    await contender.write(next++);
    latencies.push(performance.now() - started);
  };
  const loop = new LoopDelay();
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  if (perSecond === null) {
    await Promise.all(
      Array.from({ length: contender.inFlight }, async () => {
        while (performance.now() < until) {
          await one();
          // Yields to the event loop, as a server must, because the synchronous baseline does not.
          if (contender.inFlight === 1) await turn();
        }
      }),
    );
  } else {
    const under: Promise<void>[] = [];
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        const due = Math.floor(((Math.min(performance.now(), until) - startedAt) * perSecond) / 1000);
        // Writes that became due while the loop was blocked start together, as requests would. The backlog of a
        // contender that cannot keep up is dropped one second after the measurement.
        while (next < due && performance.now() < until + 1000) under.push(one());
        if (performance.now() >= until) {
          clearInterval(timer);
          resolve();
        }
      }, 1);
    });
    await Promise.all(under);
  }
  const took = (performance.now() - startedAt) / 1000;
  return { perSecond: latencies.length / took, latency: quantiles(latencies), loop: loop.stop() };
}

const directory = scratchDirectory('writes', options.directory);
const ways = { nothing, muster, plain };
type Way = keyof typeof ways;
const rows: (string | number)[][] = [];
const results = new Map<string, Measured>();
let files = 0;

async function run(way: Way, delayMs: number, load: number | null): Promise<Measured & { name: string }> {
  const contender = await ways[way](join(directory, `${++files}.db`), delayMs);
  try {
    return { name: contender.name, ...(await measure(contender, load)) };
  } finally {
    await contender.close();
  }
}

function keep(way: Way, delayMs: number, load: number | null, measured: Measured & { name: string }): void {
  results.set(`${way} ${delayMs} ${load}`, measured);
  const { name, perSecond, latency, loop } = measured;
  printProgress(`${name}, +${delayMs} ms per sync: ${perSecond.toFixed(0)} writes/s`);
  const offered = load === null ? 'maximum' : `${load}/s`;
  rows.push([name, `+${delayMs} ms`, offered, perSecond, latency.p50, latency.p99, loop.p50, loop.p99, loop.max]);
}

for (const delayMs of [0, slowSyncMs]) {
  const paced: Record<Way, (Measured & { name: string })[]> = { nothing: [], muster: [], plain: [] };
  for (let round = 0; round < rounds; round++)
    for (const way of ['nothing', 'muster', 'plain'] as const) paced[way].push(await run(way, delayMs, rate));
  for (const way of ['nothing', 'muster', 'plain'] as const) {
    const byLoop = paced[way].sort((a, b) => a.loop.p99 - b.loop.p99);
    keep(way, delayMs, rate, byLoop[Math.floor(byLoop.length / 2)]!);
  }
  for (const way of ['muster', 'plain'] as const) keep(way, delayMs, null, await run(way, delayMs, null));
}

console.log(
  table(['contender', 'sync', 'load', 'writes/s', 'write p50', 'p99 (ms)', 'loop p50', 'p99 (ms)', 'max (ms)'], rows),
);
const of = (way: Way, delayMs: number, load: number | null) => results.get(`${way} ${delayMs} ${load}`)!;
for (const delayMs of [0, slowSyncMs]) {
  const [own, theirs] = [of('muster', delayMs, null), of('plain', delayMs, null)];
  console.log(ratioLine(`writes at saturation, +${delayMs} ms per sync`, own.perSecond, theirs.perSecond, 'writes/s'));
  const [calm, stalled] = [of('muster', delayMs, rate), of('plain', delayMs, rate)];
  console.log(
    ratioLine(`loop delay p99 at ${rate} writes/s, +${delayMs} ms per sync`, calm.loop.p99, stalled.loop.p99, 'ms'),
  );
}
process.exitCode = conclude('writes', {
  sizes: `${rate} writes/s, +${slowSyncMs} ms per sync`,
  figures: { loop: of('muster', slowSyncMs, rate).loop.p99 },
});
