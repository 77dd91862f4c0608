import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentFleet } from './load/agent-fleet.ts';
import type { SteadyLoadSeen } from './load/steady-load.ts';
import { loadSteadily, typicalReads } from './load/typical-reads.ts';
import { conclude } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median, quantiles } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import type { Growth } from './run/results.ts';
import { benchDatabase } from './servers/bench-database.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Measures the cost of connected agents that send samples as real agents do by default: two samples a minute, in one
 * message a minute, at a different time for each agent. Measures an orchestrator's CPU time, memory, and the time to accept
 * the agents, first with a tenth of the agents and then with all of them. Then measures the API under a light, steady mix
 * of reads, alternately with no agents and with all agents connected to the same orchestrator.
 *
 * The simulated agents and the client share the machine with the orchestrator. The report shows their CPU time; the
 * figures are not corrected for it. Do not run other programs during the bench.
 *
 *     node bench/src/fleet.ts [--agents 10000] [--secs 120] [--rounds 3] [--rate 50] [--at-once 256]
 *                             [--database sqlite|postgres] [--json]
 */
const options = benchOptions({
  numbers: {
    ...{ agents: [10_000, 20], secs: [120, 0.4], rounds: [3, 1], rate: [50, 50], 'at-once': [256, 8] },
    ...{ poll: [60, 1], settle: [10, 0.2] },
  },
  texts: { database: 'sqlite' },
});
const { agents, secs, rounds, rate, 'at-once': atOnce, poll: pollSecs, settle: settleSecs } = options;
/** Ratio of the two fleet sizes. Also the maximum ratio of their costs. */
const times = 10;
/** Number of samples in a message. */
const samplesOfPoll = 2;

process.env.MUSTER_METRICS_POLL_INTERVAL = String(pollSecs);
// Seconds. Longer than the bench, so that no agent is reported as lost.
process.env.MUSTER_AGENTS_LOST_AFTER_SECS = '86400';
const database = await benchDatabase(options.database);

/** Returns this machine's CPU time since boot, in seconds. */
function machineCpuSecs(): number {
  const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/\s+/).slice(1, 9).map(Number);
  const [idle, waiting] = [ticks[3]!, ticks[4]!];
  return (ticks.reduce((sum, n) => sum + n, 0) - idle - waiting) / 100;
}

/** CPU time, each as a share of one core. */
interface Shares {
  server: number;
  fleet: number;
  /** All other processes on this machine, including the kernel. */
  others: number;
}

/** Measures each process's CPU time while `work` runs. */
async function sharesDuring(
  server: OrchestratorProcess,
  fleet: AgentFleet,
  work: () => Promise<unknown>,
): Promise<Shares> {
  const look = () => ({ server: server.usage.cpuSecs, fleet: fleet.cpuSecs, all: machineCpuSecs() });
  const before = look();
  const began = performance.now();
  await work();
  const took = (performance.now() - began) / 1000;
  const after = look();
  const [own, agents] = [(after.server - before.server) / took, (after.fleet - before.fleet) / took];
  return { server: own, fleet: agents, others: (after.all - before.all) / took - own - agents };
}

/** Starts an orchestrator and signs in. `readMetric` returns the value of one of its Prometheus metrics. */
async function begin() {
  const server = await OrchestratorProcess.start({ databaseUrl: await database.another() });
  const [token = ''] = await server.sessions(1);
  const readMetric = (name: string) => server.metric(name, token);
  await sleep(settleSecs * 1000);
  return { server, token, readMetric };
}
type Started = Awaited<ReturnType<typeof begin>>;

interface Cost {
  agents: number;
  /** Seconds until all agents were connected. */
  inSecs: number;
  /** CPU time of the orchestrator until all agents were connected, in seconds. */
  inCpuSecs: number;
  /** Live memory that the agents add, in bytes. */
  memory: number;
  /** CPU time after all agents have disconnected, as a share of one core. */
  alone: number;
  shares: Shares;
  samplesPerSecond: number;
}

/** Measures the cost of `count` agents that connect and send samples. Disconnects them afterwards. */
async function cost({ server, readMetric }: Started, count: number): Promise<{ fleet: AgentFleet; cost: Cost }> {
  const before = await server.settledUsage();
  const fleet = new AgentFleet(count);
  const token = await server.enrolmentToken(count);
  const cpuBefore = server.usage.cpuSecs;
  const inSecs = await fleet.connect({ ...server.address, token }, atOnce, true);
  const inCpuSecs = server.usage.cpuSecs - cpuBefore;
  printProgress(`${count} agents connected after ${inSecs.toFixed(0)} s`);
  // Waits until each agent has sent its first samples.
  await sleep((pollSecs * 1.1 + settleSecs) * 1000);
  const memory = (await server.settledUsage()).rss - before.rss;
  const storedBefore = await readMetric('muster_samples_total');
  const shares = await sharesDuring(server, fleet, () => sleep(secs * 1000));
  const samplesPerSecond = ((await readMetric('muster_samples_total')) - storedBefore) / secs;
  const connected = await readMetric('muster_agents_connected');
  const expected = (count * samplesOfPoll) / pollSecs;
  // Does not verify the number of samples if the measurement is shorter than the sample interval.
  if (connected !== count || (secs >= pollSecs && samplesPerSecond < 0.8 * expected))
    throw new Error(
      `the measurement is not valid: ${connected} of ${count} agents were connected, and sent ${samplesPerSecond.toFixed(1)} instead of ${expected.toFixed(1)} samples a second`,
    );
  printProgress(
    `${count} agents cost ${(shares.server * 100).toFixed(1)} % of a core and send ${samplesPerSecond.toFixed(1)} samples/s`,
  );
  await fleet.leave();
  await sleep(settleSecs * 1000);
  const { server: alone } = await sharesDuring(server, fleet, () => sleep((secs / 2) * 1000));
  return { fleet, cost: { agents: count, inSecs, inCpuSecs, memory, alone, shares, samplesPerSecond } };
}

interface Turn {
  with: boolean;
  p50: number;
  p99: number;
  max: number;
  requests: number;
  resets: number;
  failures: number;
  shares: Shares;
}

/** Measures reads alternately with no agents and with all agents connected. */
async function inTurns(started: Started, fleet: AgentFleet): Promise<Turn[]> {
  const paths = await typicalReads(started.server.call);
  const turns: Turn[] = [];
  const turn = async (isWith: boolean) => {
    await sleep(settleSecs * 1000);
    const connected = await started.readMetric('muster_agents_connected');
    if (connected !== (isWith ? agents : 0))
      throw new Error(`${connected} agents are connected instead of ${isWith ? agents : 0}`);
    let seen: SteadyLoadSeen | undefined;
    const { server, token } = started;
    const shares = await sharesDuring(server, fleet, async () => {
      seen = await loadSteadily({
        url: server.url,
        ca: server.certificate,
        token,
        paths,
        perSecond: rate,
        seconds: secs / 2,
      });
    });
    const { latencies, resets, failures, failed } = seen!;
    const found = { with: isWith, ...quantiles(latencies), requests: latencies.length, resets, failures, shares };
    turns.push(found);
    const faults = `${resets} connections reset, ${failures} failed${failed === null ? '' : ` (${failed})`}`;
    printProgress(`reads with ${connected} agents: p99 ${found.p99.toFixed(1)} ms, ${faults}`);
  };
  for (let round = 0; round < rounds; round++) {
    await turn(false);
    await fleet.comeBack(atOnce);
    await turn(true);
    await fleet.leave();
  }
  return turns;
}

const small = Math.ceil(agents / times);
const startedSmall = await begin();
const { fleet: smallFleet, cost: few } = await cost(startedSmall, small);
await smallFleet.stop();
await startedSmall.server.stop();

const started = await begin();
const { fleet, cost: all } = await cost(started, agents);
const turns = await inTurns(started, fleet);
await fleet.stop();
await started.server.stop();
await database.stop();

console.log(`${options.database}: ${agents} agents, ${secs} s; ${rounds} rounds of ${rate} reads a second\n`);
console.log(
  table(
    [
      'agents',
      's until connected',
      'CPU s until connected',
      'KB/agent',
      'samples/s',
      'cores without agents',
      'cores',
      'cores, agents',
      'cores, others',
    ],
    [few, all].map((of) => [
      String(of.agents),
      of.inSecs,
      of.inCpuSecs,
      of.memory / of.agents / 1024,
      of.samplesPerSecond,
      of.alone,
      of.shares.server,
      of.shares.fleet,
      of.shares.others,
    ]),
  ),
);
console.log('');
console.log(
  table(
    ['reads', 'p50 ms', 'p99 ms', 'max ms', 'resets', 'failed', 'cores', 'cores, agents', 'cores, others'],
    turns.map((of) => [
      of.with ? `${agents} agents` : 'no agents',
      of.p50,
      of.p99,
      of.max,
      String(of.resets),
      String(of.failures),
      of.shares.server,
      of.shares.fleet,
      of.shares.others,
    ]),
  ),
);
const p99 = (isWith: boolean) => median(turns.filter((turn) => turn.with === isWith).map((turn) => turn.p99));
const added = (of: Cost) => of.shares.server - of.alone;
console.log(`\n${ratioLine('p99 of reads, median of the rounds', p99(true), p99(false), 'ms')}`);
console.log(`connections reset outside of the measured reads: ${started.server.resets}`);
console.log(
  ratioLine(
    `CPU time of ${all.agents} agents compared with ${few.agents}`,
    added(all) * 100,
    added(few) * 100,
    '% of a core',
  ),
);

/** Maximum share of requests without a response; the latencies are not judged above this share. */
const lostShare = 0.01;
const lost = turns.reduce((sum, { resets, failures }) => sum + resets + failures, 0);
const requests = turns.reduce((sum, turn) => sum + turn.requests + turn.resets, 0);
const ratio = (of: (cost: Cost) => number): Figure =>
  of(few) <= 0
    ? notJudged(`the cost of ${few.agents} agents is too small to measure; increase --agents`)
    : of(all) / of(few);
const growthOf = (what: string, unit: string, of: (cost: Cost) => number): Growth => ({
  ...{ what, unit },
  points: [few, all].map((cost) => [cost.agents, of(cost)]),
});
process.exitCode = conclude('fleet', {
  sizes: `${options.database}, ${agents} agents, ${secs} s, ${rounds} rounds of ${rate} reads/s`,
  figures: {
    cpu: all.shares.server * 100,
    p99: lost > requests * lostShare ? notJudged(`${lost} of ${requests} requests failed`) : p99(true) / p99(false),
    growthCpu: ratio(added),
    growthMemory: ratio(({ memory }) => memory),
    growthAccept: ratio(({ inCpuSecs }) => inCpuSecs),
  },
  growth: [
    growthOf('CPU time', '% of a core', (of) => added(of) * 100),
    growthOf('live memory', 'MB', ({ memory }) => memory / 1e6),
    growthOf('CPU time to accept all agents', 's', ({ inCpuSecs }) => inCpuSecs),
    growthOf('time to accept all agents', 's', ({ inSecs }) => inSecs),
  ],
});
