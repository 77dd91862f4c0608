import { setTimeout as sleep } from 'node:timers/promises';
import { listAgents, listRuns } from '@muster/protocol/http';
import { AgentFleet } from './load/agent-fleet.ts';
import { EventStream } from './load/event-stream.ts';
import { applyAssignedFiles, assignFiles } from './load/files-module.ts';
import { sampleSecs } from './load/simulated-agent.ts';
import { tagEvent, writeTags } from './load/tag-writes.ts';
import { conclude } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { type Cell, formatNumber, ratioLine, table } from './run/report.ts';
import { medians, perSecond, perThing, perUnit } from './run/unit-cost.ts';
import { type GroupCounters, OrchestratorGroup, ProgramMissing } from './servers/orchestrator-group.ts';

/**
 * Measures what replicas cost: the CPU time that an agent, an operation, and an event add to all orchestrator processes
 * together. Compares three replicas on PostgreSQL and NATS with one process on PostgreSQL. Both run at the same time,
 * each with its own servers and agents, and their rounds alternate, so that other load on the machine affects both.
 *
 * - Agents are connected in turn to all replicas, and send samples as by default, as in `fleet.ts`.
 * - An operation is one agent's part of an apply that changes nothing.
 * - An event is a tag write, at a steady rate, with one stream of events open at each orchestrator. The writes go to all
 *   replicas in turn, so most concern agents of another replica.
 *
 * Also counts transactions and rows in PostgreSQL, and messages in NATS. PostgreSQL does not sync, and does not vacuum.
 * Drift checks are off.
 *
 *     npm run bench -- replicas [--agents 10000] [--replicas 3] [--secs 120] [--rounds 3] [--resources 20]
 *                               [--rate 200] [--event-secs 20] [--at-once 256] [--json]
 */
const options = benchOptions({
  numbers: {
    ...{ agents: [10_000, 6], replicas: [3, 3], secs: [120, 0.5], rounds: [3, 1], resources: [20, 2] },
    ...{ rate: [200, 40], 'event-secs': [20, 0.5], 'at-once': [256, 6], poll: [60, 1], settle: [12, 0.2] },
  },
});
const { agents, replicas, secs, rounds, resources, rate, settle, poll } = options;
/** Number of agents whose tags are written. */
const taggedAgents = 500;
/** Maximum share of failed operations and writes, and of missing agents and events. Above it, a figure is not judged. */
const lostShare = 0.01;

process.env.MUSTER_METRICS_POLL_INTERVAL = String(poll);
process.env.MUSTER_DRIFT_ENABLED = 'false';
// Seconds. Longer than the bench, so that no agent is reported as lost, and no session ends.
process.env.MUSTER_AGENTS_LOST_AFTER_SECS = '86400';
process.env.MUSTER_SESSION_TOKEN_EXPIRY_SECS = '86400';

interface Contender {
  readonly name: string;
  readonly group: OrchestratorGroup;
  readonly fleet: AgentFleet;
  /** Token of a sign-in session. */
  readonly token: string;
  /** What did not succeed. */
  readonly lost: { agents: number; operations: number; writes: number; events: number; requests: number };
  /** ID of the last completed run. */
  lastRunId: string | null;
}
/** Both contenders: one process, and the replicas. */
type Pair = readonly [one: Contender, several: Contender];
/** A value for each contender. */
type Both<T> = readonly [one: T, several: T];

async function startContender(count: number): Promise<Contender> {
  const group = await OrchestratorGroup.start(count);
  const { call } = group.members[0]!;
  await assignFiles(call, resources, `${'x'.repeat(200)}\n`);
  const [token = ''] = await group.members[0]!.sessions(1);
  const name = count === 1 ? 'one process' : `${count} replicas`;
  printProgress(`${name} started`);
  const lost = { agents: 0, operations: 0, writes: 0, events: 0, requests: 0 };
  return { name, group, fleet: new AgentFleet(agents), token, lost, lastRunId: null };
}

const both = <T>(of: (at: 0 | 1) => T): Both<T> => [of(0), of(1)];

const forBoth = async <T>([one, several]: Pair, work: (contender: Contender) => Promise<T>): Promise<Both<T>> =>
  Promise.all([work(one), work(several)]);

/** Returns what happens per second, measured for both at the same time. */
async function measureRates(pair: Pair, seconds: number): Promise<Both<GroupCounters>> {
  await sleep(settle * 1000);
  const before = await forBoth(pair, ({ group }) => group.read());
  await sleep(seconds * 1000);
  const after = await forBoth(pair, ({ group }) => group.read());
  return both((at) => perSecond(before[at], after[at]));
}

async function connect({ name, group, fleet }: Contender): Promise<void> {
  const before = await group.read();
  const token = await group.members[0]!.enrolmentToken(agents);
  const took = await fleet.connect(group.targets(token), options['at-once'], true);
  const cpuSecs = (await group.read()).counters.cpuSecs - before.counters.cpuSecs;
  printProgress(`${name}: ${agents} agents connected after ${took.toFixed(0)} s, ${cpuSecs.toFixed(1)} CPU s`);
}

/** Checks that the agents are connected, and that they send samples. */
async function expectSamples({ name, group, token, lost }: Contender, samplesBefore: number): Promise<void> {
  const samples = ((await group.metric('muster_samples_total', token)) - samplesBefore) / (secs + settle);
  const connected = await group.metric('muster_agents_connected', token);
  lost.agents = agents - connected;
  const expected = agents / sampleSecs;
  printProgress(`${name}: ${connected} agents send ${samples.toFixed(1)} samples/s (expected: ${expected.toFixed(1)})`);
  // Does not verify the number of samples if the measurement is shorter than an interval.
  if (secs >= Math.max(poll, sampleSecs) && samples < 0.8 * expected)
    throw new Error(`${name}: the agents send too few samples`);
}

/**
 * Measures work in rounds that alternate. The first round of each contender warms up, and does not count.
 * @param idle what happens per second without the work
 * @param work returns the number of its units
 * @returns the cost of a unit, by round
 */
async function measureRounds(
  what: string,
  pair: Pair,
  idle: Both<GroupCounters>,
  work: (contender: Contender, round: number) => Promise<number>,
): Promise<Both<GroupCounters[]>> {
  const costs = both((): GroupCounters[] => []);
  for (let round = 0; round <= rounds; round++)
    for (const at of [0, 1] as const) {
      const contender = pair[at];
      const before = await contender.group.read();
      const began = performance.now();
      const units = await work(contender, round);
      const took = ((performance.now() - began) / 1000).toFixed(1);
      await sleep(settle * 1000);
      const cost = perUnit(before, await contender.group.read(), idle[at], units);
      if (round > 0) costs[at].push(cost);
      const turn = round === 0 ? 'warm-up' : `round ${round} of ${rounds}`;
      printProgress(
        `${contender.name}: ${units} ${what}, ${turn}: ${formatNumber(cost.cpuSecs * 1000)} CPU ms each, within ${took} s`,
      );
    }
  return costs;
}

/** Milliseconds between two looks at unfinished work. */
const lookMs = 1_000;
/** Maximum number of looks at a run whose request has failed, or was answered before the run ended. */
const maxRunLooks = 1_800;
/** Maximum number of looks at streams that lack events. */
const maxStreamLooks = 30;

/** Applies on all agents. @returns the number of operations that succeeded */
async function apply(contender: Contender, turn: number): Promise<number> {
  const { name, group, lost } = contender;
  const { call } = group.members[turn % group.members.length]!;
  const requestFailed = (error: Error) => {
    lost.requests++;
    printProgress(`${name}: a request failed: ${error.message}`);
    return [];
  };
  await applyAssignedFiles(call).catch(requestFailed);
  for (let look = 0; look < maxRunLooks; look++) {
    const [run] = await call(listRuns, { query: { limit: '1' } }).catch(requestFailed);
    if (run !== undefined && run.run_id !== contender.lastRunId && run.status !== 'running') {
      contender.lastRunId = run.run_id;
      lost.operations += agents - run.outcomes.succeeded;
      return run.outcomes.succeeded;
    }
    await sleep(lookMs);
  }
  throw new Error(`${name}: the apply has not ended`);
}

/** Writes tags, and waits until all streams have their events. @returns the number of writes */
async function writeEvents({ name, group, lost }: Contender, streams: readonly EventStream[]): Promise<number> {
  const calls = group.members.map(({ call }) => call);
  const some = await calls[0]!(listAgents, { query: { limit: String(taggedAgents) } });
  const nodeIds = some.map(({ node_id }) => node_id);
  const before = streams.map(({ received }) => received);
  const { written, failures } = await writeTags(calls, nodeIds, rate, options['event-secs']);
  for (const [message, count] of failures) {
    lost.writes += count;
    printProgress(`${name}: ${count} writes failed: ${message}`);
  }
  const missing = () =>
    streams.reduce((sum, { received }, index) => sum + Math.max(0, before[index]! + written - received), 0);
  for (let look = 0; missing() > 0 && look < maxStreamLooks; look++) await sleep(lookMs);
  lost.events += missing();
  return written;
}

/**
 * Estimates from before replicas were built, for 10,000 agents on three replicas: per second, 30 commits and 200 rows with
 * samples and hourly drift checks, and 270 commits and 4,800 rows more during an apply of 20 resources on all agents
 * within a minute, with 850 delivered messages in total.
 */
const eachMinute = (ofAllPerSecond: number) => (ofAllPerSecond * 60) / 10_000;
const agentEstimates = { writes: eachMinute(30), rows: eachMinute(200) };
const operationEstimates = { writes: eachMinute(270), rows: eachMinute(4_800), delivered: eachMinute(850) };

const printed: readonly [name: keyof GroupCounters, text: string, scale: number][] = [
  ['cpuSecs', 'CPU ms, orchestrators', 1000],
  ['databaseCpuSecs', 'CPU ms, PostgreSQL', 1000],
  ['natsCpuSecs', 'CPU ms, NATS', 1000],
  ['commits', 'transactions', 1],
  ['writes', 'transactions that write', 1],
  ['rollbacks', 'transactions rolled back', 1],
  ['rows', 'rows written', 1],
  ['published', 'messages to NATS', 1],
  ['delivered', 'messages from NATS', 1],
  ['deliveredBytes', 'bytes from NATS', 1],
];

function printCosts(what: string, [one, several]: Both<GroupCounters>, estimates: Partial<GroupCounters>): void {
  const rows = printed.map(([name, text, scale]): Cell[] => [
    ...[text, one[name] * scale, several[name] * scale],
    one[name] > 0 ? several[name] / one[name] : null,
    estimates[name] ?? null,
  ]);
  console.log(`\n${table([what, 'one process', `${replicas} replicas`, 'ratio', 'estimate'], rows)}`);
}

/** Returns the figure, unless too much of its work was lost. */
const unlessLost = (what: string, lost: number, of: number, figure: Figure): Figure =>
  lost > of * lostShare ? notJudged(`${lost} of ${of} ${what} were lost`) : figure;

const ratioOf = ([one, several]: Both<GroupCounters>): Figure =>
  one.cpuSecs > 0
    ? several.cpuSecs / one.cpuSecs
    : notJudged('the cost is too small to measure; increase --agents or --secs');

const medianRatio = ([one, several]: Both<GroupCounters[]>): number =>
  median(several.map(({ cpuSecs }, round) => cpuSecs / one[round]!.cpuSecs));

const mediansOf = (costs: Both<GroupCounters[]>): Both<GroupCounters> => both((at) => medians(costs[at]));

interface Costs {
  /** Without agents, per second. */
  readonly empty: Both<GroupCounters>;
  /** Cost of an agent that sends samples, per minute. */
  readonly agent: Both<GroupCounters>;
  /** Cost of an operation, by round. */
  readonly operations: Both<GroupCounters[]>;
  /** Cost of an event, by round. */
  readonly events: Both<GroupCounters[]>;
}

async function measure(pair: Pair): Promise<Costs> {
  const empty = await measureRates(pair, secs / 2);
  printProgress('measured without agents');
  for (const contender of pair) await connect(contender);
  // Waits until each agent has sent its first samples.
  await sleep(poll * 1100);
  const samples = await forBoth(pair, ({ group, token }) => group.metric('muster_samples_total', token));
  const idle = await measureRates(pair, secs);
  for (const at of [0, 1] as const) await expectSamples(pair[at], samples[at]);
  const agent = both((at) => perThing(idle[at], empty[at], agents / 60));
  const operations = await measureRounds('operations', pair, idle, apply);
  const events = await measureEvents(pair);
  return { empty, agent, operations, events };
}

async function measureEvents(pair: Pair): Promise<Both<GroupCounters[]>> {
  const streams = await forBoth(pair, ({ group }) =>
    Promise.all(group.members.map(({ call }) => EventStream.open(call, tagEvent))),
  );
  const idle = await measureRates(pair, secs / 2);
  const streamsOf = (contender: Contender) => streams[contender === pair[0] ? 0 : 1];
  const costs = await measureRounds('events', pair, idle, (contender) => writeEvents(contender, streamsOf(contender)));
  for (const contender of pair)
    for (const stream of streamsOf(contender)) {
      contender.lost.requests += stream.losses;
      stream.close();
    }
  return costs;
}

async function print(pair: Pair, { empty, agent, operations, events }: Costs): Promise<void> {
  console.log(`${agents} agents, ${resources} resources each, ${rate} events/s; medians of ${rounds} rounds`);
  printCosts('a second without agents', empty, {});
  printCosts('an agent with samples, a minute', agent, agentEstimates);
  printCosts('an operation', mediansOf(operations), operationEstimates);
  printCosts('an event', mediansOf(events), {});
  console.log('');
  const line = (what: string, [one, several]: Both<GroupCounters>) =>
    ratioLine(what, several.cpuSecs * 1000, one.cpuSecs * 1000, 'CPU ms');
  console.log(line('an agent with samples, a minute', agent));
  console.log(line('an operation', mediansOf(operations)));
  console.log(line('an event', mediansOf(events)));
  for (const { name, group, lost } of pair)
    console.log(
      `${name}: ${await group.databaseConnections()} connections to PostgreSQL; ` +
        `lost: ${lost.agents} agents, ${lost.operations} operations, ${lost.writes} writes, ${lost.events} events; ` +
        `${lost.requests} requests failed, ${group.resets} connections were reset and used again`,
    );
}

const sizes = `${agents} agents, ${replicas} replicas, ${secs} s, ${resources} resources each, ${rate} events/s, ${rounds} rounds`;

/** @returns the exit code */
async function run(): Promise<number> {
  const pair: Pair = [await startContender(1), await startContender(replicas)];
  const costs = await measure(pair);
  await print(pair, costs);
  for (const { fleet, group } of pair) {
    await fleet.stop();
    await group.stop();
  }
  const lost = (of: keyof Contender['lost']) => pair[0].lost[of] + pair[1].lost[of];
  const writes = 2 * rate * options['event-secs'] * (rounds + 1);
  const events = unlessLost('events', lost('events'), writes, medianRatio(costs.events));
  return conclude('replicas', {
    sizes,
    figures: {
      agent: unlessLost('agents', lost('agents'), 2 * agents, ratioOf(costs.agent)),
      operation: unlessLost('operations', lost('operations'), 2 * agents * (rounds + 1), medianRatio(costs.operations)),
      event: unlessLost('writes', lost('writes'), writes, events),
    },
  });
}

try {
  process.exitCode = await run();
} catch (error) {
  if (!(error instanceof ProgramMissing)) throw error;
  const missing = notJudged(error.message);
  // The exit also ends the programs that have started.
  process.exit(conclude('replicas', { sizes, figures: { agent: missing, operation: missing, event: missing } }));
}
