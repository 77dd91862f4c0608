import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../../tools/suite/cli.ts';
import { AgentFleet } from './load/agent-fleet.ts';
import { applyAssignedFiles, assignFiles } from './load/files-module.ts';
import { loadSteadily, typicalReads } from './load/typical-reads.ts';
import { conclude, type Measured, resultOf } from './run/conclude.ts';
import { lineGraph } from './run/line-graph.ts';
import { benchOptions } from './run/options.ts';
import { commitOfRun, placeOfRun, soakGraphFile } from './run/place.ts';
import { printProgress } from './run/progress.ts';
import { quantiles } from './run/quantiles.ts';
import { record } from './run/record.ts';
import { table } from './run/report.ts';
import { growthBetween, trend } from './run/trend.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Runs an orchestrator for hours with agents that send samples, a drift check on each agent every hour, an apply on all
 * agents every ten minutes, and a steady load of reads. Records its memory, the sizes of its files, and the API's p99
 * latency over time, and plots them.
 *
 *     npm run soak -- fleet [--agents 10000] [--minutes 120] [--every 10] [--drift 60] [--look 60] [--rate 20] [--write]
 *
 * `--every`, `--drift`: minutes between two applies, and between two drift checks. `--look`: seconds between two
 * records. `--write` adds the result and the graph to docs/performance.md. Without it, the graph is written to a
 * temporary directory that is removed afterwards; `--graph FILE` keeps it.
 */
const options = benchOptions({
  numbers: {
    ...{ agents: [10_000, 10], minutes: [120, 0.1], every: [10, 0.02], drift: [60, 0.05], look: [60, 0.5] },
    ...{ rate: [20, 20], resources: [4, 4], poll: [60, 1], 'at-once': [256, 8] },
  },
  texts: { graph: null },
  flags: ['write'],
});
const { agents, minutes, every, look, rate, resources } = options;
/** Minutes of warm-up, in which caches fill and V8 sizes its heap. They do not count. */
const warmUp = Math.min(15, minutes / 4);
/** Size of a stored sample in SQLite in bytes, as in docs/operations.md. */
const bytesOfSample = 128;

process.env.MUSTER_METRICS_POLL_INTERVAL = String(options.poll);
process.env.MUSTER_DRIFT_INTERVAL = String(Math.ceil(options.drift * 60));
// Seconds. The longest setting, which exceeds the soak, so that no agent is reported as lost.
process.env.MUSTER_AGENTS_LOST_AFTER_SECS = '86400';
// Seconds. Longer than the soak, which uses one session for all reads.
process.env.MUSTER_SESSION_TOKEN_EXPIRY_SECS = '86400';

/** Measurements of the orchestrator at one point in time. */
interface Look {
  minute: number;
  rssMb: number;
  databaseMb: number;
  samplesMb: number;
  logMb: number;
  /** Milliseconds; the p99 of the reads since the previous record. */
  p99: number;
  /** CPU time since the previous record, as a percentage of one core. */
  cpu: number;
  connected: number;
}

const commit = commitOfRun();
const place = placeOfRun(commit);
const server = await OrchestratorProcess.start();
const { call } = server;
const [token = ''] = await server.sessions(1);
const readMetric = (name: string) => server.metric(name, token);

await assignFiles(call, resources);
const fleet = new AgentFleet(agents);
const secs = await fleet.enroll(server, options['at-once'], true);
printProgress(`${agents} agents connected within ${secs.toFixed(0)} s`);

const began = performance.now();
const minuteNow = () => (performance.now() - began) / 60_000;
const looks: Look[] = [];
const applies: { minute: number; secs: number; cpuSecs: number; databaseMb: number; succeeded: number }[] = [];
let lost = 0;
let requests = 0;

const megabytesOf = (file: string): number =>
  (statSync(join(server.dataDir, file), { throwIfNoEntry: false })?.size ?? 0) / 1e6;

/** Applies the assignment on all agents at a fixed interval. A failed apply is counted and does not stop the soak. */
async function applyOften(): Promise<void> {
  for (let turn = 1; ; turn++) {
    const wait = turn * every - minuteNow();
    if (turn * every >= minutes) return;
    await sleep(Math.max(0, wait * 60_000));
    const [startedAt, cpuBefore] = [performance.now(), server.usage.cpuSecs];
    try {
      const run = await applyAssignedFiles(call);
      const succeeded = run.results.filter(({ status }) => status === 'succeeded').length;
      const took = (performance.now() - startedAt) / 1000;
      applies.push({
        minute: minuteNow(),
        secs: took,
        cpuSecs: server.usage.cpuSecs - cpuBefore,
        databaseMb: megabytesOf('muster.db'),
        succeeded,
      });
      printProgress(`apply ${turn}: ${succeeded} of ${agents} agents within ${took.toFixed(1)} s`);
    } catch (error) {
      applies.push({
        minute: minuteNow(),
        secs: Number.NaN,
        cpuSecs: Number.NaN,
        databaseMb: Number.NaN,
        succeeded: 0,
      });
      printProgress(`apply ${turn} failed: ${(error as Error).message}`);
    }
  }
}

async function lookOften(): Promise<void> {
  let cpuBefore = server.usage.cpuSecs;
  let at = performance.now();
  while (minuteNow() < minutes) {
    const paths = await typicalReads(call);
    const seen = await loadSteadily({
      url: server.url,
      ca: server.certificate,
      token,
      paths,
      perSecond: rate,
      seconds: look,
    });
    lost += seen.resets + seen.failures;
    requests += seen.latencies.length + seen.resets;
    const { rss, cpuSecs } = server.usage;
    const now = performance.now();
    const found: Look = {
      minute: minuteNow(),
      rssMb: rss / 1e6,
      databaseMb: megabytesOf('muster.db'),
      samplesMb: megabytesOf('metrics.db'),
      logMb: megabytesOf('muster.db-wal'),
      p99: quantiles(seen.latencies).p99,
      cpu: (100 * (cpuSecs - cpuBefore)) / ((now - at) / 1000),
      connected: await readMetric('muster_agents_connected'),
    };
    [cpuBefore, at] = [cpuSecs, now];
    looks.push(found);
    printProgress(
      `minute ${found.minute.toFixed(1)}: ${found.rssMb.toFixed(0)} MB, p99 ${found.p99.toFixed(1)} ms, ${found.cpu.toFixed(1)} % of a core, ${found.connected} agents`,
    );
  }
}

const samplesBefore = await readMetric('muster_samples_total');
const samplesMbBefore = megabytesOf('metrics.db');
await Promise.all([lookOften(), applyOften()]);
const samples = (await readMetric('muster_samples_total')) - samplesBefore;
await fleet.stop();
await server.stop();

console.log(
  table(
    ['minute', 'MB resident', 'MB database', 'MB samples', 'MB log', 'p99 ms', '% of a core', 'connected'],
    looks.map((of) => [
      of.minute,
      ...[of.rssMb, of.databaseMb, of.samplesMb, of.logMb, of.p99, of.cpu],
      String(of.connected),
    ]),
  ),
);
console.log('');
console.log(
  table(
    ['apply at minute', 's', 'CPU s', 'succeeded'],
    applies.map((of) => [of.minute, of.secs, of.cpuSecs, String(of.succeeded)]),
  ),
);
console.log(`\n${lost} of ${requests} reads failed; ${server.resets} other connections were reset`);

const settled = looks.filter(({ minute }) => minute >= warmUp);
const series = (of: (one: Look) => number): [number, number][] => looks.map((one) => [one.minute, of(one)]);
const graph = lineGraph([
  { title: 'Resident memory', unit: 'MB', lines: [{ name: 'orchestrator', points: series(({ rssMb }) => rssMb) }] },
  {
    title: 'Files',
    unit: 'MB',
    lines: [
      { name: 'database', points: series(({ databaseMb }) => databaseMb) },
      { name: 'samples', points: series(({ samplesMb }) => samplesMb) },
      { name: 'write-ahead log', points: series(({ logMb }) => logMb) },
    ],
  },
  { title: 'p99 of the API', unit: 'ms', lines: [{ name: 'reads', points: series(({ p99 }) => p99) }] },
  { title: 'CPU time', unit: '% of a core', lines: [{ name: 'orchestrator', points: series(({ cpu }) => cpu) }] },
]);
const failedApplies = applies.filter(({ succeeded }) => succeeded < agents).length;
const measured: Measured<'soak-fleet'> = {
  sizes: `${agents} agents for ${minutes} min, ${applies.length} applies, ${rate} reads/s`,
  figures: {
    memory: trend(settled.map(({ rssMb }) => rssMb)),
    p99: trend(settled.map(({ p99 }) => p99)),
    samples: (megabytesOf('metrics.db') - samplesMbBefore) / ((samples * bytesOfSample) / 1e6),
    database: growthBetween(applies.map(({ databaseMb }) => databaseMb)),
    lost: (100 * lost) / requests,
    applies: failedApplies,
  },
};
if (options.graph !== null) writeFileSync(options.graph, graph);
if (options.write && !options.smoke) {
  writeFileSync(join(root, soakGraphFile), graph);
  record({ 'soak-fleet': [{ ...place, ...resultOf('soak-fleet', measured) }] });
}
process.exitCode = conclude('soak-fleet', measured);
