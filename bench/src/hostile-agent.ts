import { fork } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@muster/protocol/client';
import {
  applyAgent,
  createEnrolmentToken,
  getState,
  getStatus,
  listAgents,
  listAudit,
  listDrift,
  listOperations,
} from '@muster/protocol/http';
import { type Strategy, strategies } from '../../e2e/hostile-agent.ts';
import { AgentFleet } from './load/agent-fleet.ts';
import { applyAssignedFiles, assignFiles } from './load/files-module.ts';
import type { HostileAnswer, HostileOrder } from './load/hostile-worker.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { quantiles } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { nextMessage } from './servers/server-process.ts';

/**
 * Measures a real orchestrator with one hostile agent for each strategy: the latency of its API, its memory, and, compared
 * with a second orchestrator without hostile agents, the duration of applies on other agents and the growth of its data
 * directory.
 *
 *     node bench/src/hostile-agent.ts [--minutes 10] [--agents 20] [--resources 100] [--budget-mib 64] [--json]
 */
const options = benchOptions({
  numbers: { minutes: [10, 0.1], agents: [20, 2], resources: [100, 10], 'budget-mib': [64, 1] },
});
const { minutes, agents, resources } = options;
const budget = options['budget-mib'] * 1024 * 1024;
process.env.MUSTER_AGENTS_DAILY_BYTES = String(budget);
const names = Object.keys(strategies) as Strategy[];
/** Milliseconds between applies on the hostile agents, which provide operations for the agents to report on. */
const hostileApplyMs = 15_000;
const askMs = 100;
const lookMs = 500;

/** Starts an orchestrator with connected, well-behaved agents and an assignment that selects them. */
async function start() {
  const orchestrator = await OrchestratorProcess.start();
  await assignFiles(orchestrator.call, resources);
  const fleet = new AgentFleet(agents);
  await fleet.enroll(orchestrator, agents);
  return { orchestrator, fleet };
}

/** Applies the assignment. @returns milliseconds until all selected agents have completed the apply */
async function applyOnce(call: Client): Promise<number> {
  const began = performance.now();
  const run = await applyAssignedFiles(call);
  const bad = run.results.find(({ status }) => status !== 'succeeded');
  if (bad !== undefined || run.results.length !== agents)
    throw new Error(`an apply did not succeed on all agents: ${JSON.stringify(bad)}`);
  return performance.now() - began;
}

function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    bytes += entry.isDirectory() ? bytesBelow(path) : bytesOf(path);
  }
  return bytes;
}

const mib = (bytes: number) => bytes / 1024 / 1024;

/** Returns the size of a file in bytes, or 0 if SQLite has deleted the file. */
const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const hostile = await start();
const alone = await start();
const { call } = hostile.orchestrator;
for (const { orchestrator } of [hostile, alone]) await applyOnce(orchestrator.call);

const tokens = {} as Record<Strategy, string>;
for (const name of names)
  tokens[name] = (await call(createEnrolmentToken, { body: { uses: 1, name, tags: { hostile: 'yes' } } })).token;

const sizes = () => [hostile, alone].map(({ orchestrator }) => bytesBelow(orchestrator.dataDir)) as [number, number];
const before = sizes();
const worker = fork(join(import.meta.dirname, 'load/hostile-worker.ts'));
const started = nextMessage(worker);
worker.send({ port: hostile.orchestrator.address.port, tokens } satisfies HostileOrder);
await started;
// Waits until two agents are enrolled, because the following reads use their names.
const enrolled = async () => (await call(listAgents, { query: { filter: 'hostile=yes' } })).map(({ name }) => name);
for (let there = await enrolled(); !['drift-hints', 'many-results'].every((name) => there.includes(name)); ) {
  await sleep(lookMs);
  there = await enrolled();
}

const until = performance.now() + minutes * 60_000;
const goesOn = () => performance.now() < until;
const answers: number[] = [];
const applies = { hostile: [] as number[], alone: [] as number[] };
let maxRss = 0;
let maxLogBytes = 0;

/** Sends typical reads by operators in sequence. */
async function ask(): Promise<void> {
  const requests = [
    () => call(getStatus, {}),
    () => call(listAgents, {}),
    () => call(listOperations, { query: { limit: '50' } }),
    () => call(listAudit, { query: { limit: '50' } }),
    () => call(listDrift, { params: { node_id: 'drift-hints' }, query: { limit: '50' } }),
    () => call(getState, { params: { node_id: 'many-results' } }),
  ];
  for (let i = 0; goesOn(); i++) {
    const began = performance.now();
    await requests[i % requests.length]!();
    answers.push(performance.now() - began);
    await sleep(askMs);
  }
}

async function look(): Promise<void> {
  while (goesOn()) {
    maxRss = Math.max(maxRss, hostile.orchestrator.usage.rss);
    maxLogBytes = Math.max(maxLogBytes, bytesOf(join(hostile.orchestrator.dataDir, 'muster.db-wal')));
    await sleep(lookMs);
  }
}

/** Applies on both orchestrators alternately, so that other load on the machine affects both. */
async function apply(): Promise<void> {
  while (goesOn()) {
    applies.hostile.push(await applyOnce(call));
    applies.alone.push(await applyOnce(alone.orchestrator.call));
  }
}

/**
 * Requests applies on the hostile agents. Some agents never finish an apply, so later applies wait in the agent's
 * queue.
 */
async function applyToHostile(): Promise<void> {
  while (goesOn()) {
    for (const node_id of names)
      await call(applyAgent, { params: { node_id }, body: { modules: ['bench'] }, respondAsync: true }).catch(
        (error: unknown) => {
          // The request fails while the agent is disconnected.
          if (!(error instanceof Error)) throw error;
        },
      );
    printProgress(`${answers.length} responses, ${applies.hostile.length} applies, ${mib(maxRss).toFixed(0)} MiB`);
    await sleep(Math.min(hostileApplyMs, Math.max(0, until - performance.now())));
  }
}

await Promise.all([ask(), look(), apply(), applyToHostile()]);
const counted = nextMessage<HostileAnswer>(worker);
worker.send('counts');
const counts = await counted;
const limited = (await call(listAudit, { query: { event_type: 'agent.limited', limit: '500' } })).events;
const refused = (await call(listAudit, { query: { event_type: 'agent.refused', limit: '500' } })).events;
worker.disconnect();
for (const { fleet, orchestrator } of [hostile, alone]) {
  await fleet.stop();
  await orchestrator.stop();
}
// The orchestrators have stopped, so their databases include the write-ahead logs. A database file never shrinks.
const [growthBeside, growthAlone] = sizes().map((bytes, i) => bytes - before[i]!) as [number, number];

const [answerTimes, withHostile, without] = [answers, applies.hostile, applies.alone].map(quantiles);
console.log(
  `${names.length} hostile agents for ${minutes} min with a budget of ${options['budget-mib']} MiB a day each; ${agents} other agents, ${resources} resources\n`,
);
console.log(
  table(
    ['hostile agent', 'links', 'links ended', 'reports', 'MiB sent', 'operations finished'],
    names.map((name) => {
      const { links, ended, reports, bytes, finished } = counts[name];
      return [name, links, ended, reports, mib(bytes), finished];
    }),
  ),
);
console.log(
  `\n${table(
    ['ms', 'count', 'p50', 'p99', 'max'],
    [
      ['API responses', answers.length, answerTimes!.p50, answerTimes!.p99, answerTimes!.max],
      ['applies with hostile agents', applies.hostile.length, withHostile!.p50, withHostile!.p99, withHostile!.max],
      ['applies without hostile agents', applies.alone.length, without!.p50, without!.p99, without!.max],
    ],
  )}`,
);
const usedUp = limited.map(({ target, metadata }) => `${metadata.what} of ${target.name}`);
console.log(
  `\nevents: ${refused.length} agent.refused, ${limited.length} agent.limited (${usedUp.toSorted().join(', ')})`,
);
console.log(
  `disk: ${mib(growthBeside).toFixed(1)} MiB with hostile agents, ${mib(growthAlone).toFixed(1)} MiB without; write-ahead log at most ${mib(maxLogBytes).toFixed(1)} MiB`,
);
console.log(ratioLine('apply on other agents, median', withHostile!.p50, without!.p50, 'ms'));
process.exitCode = conclude('hostile-agent', {
  sizes: `${names.length} hostile agents for ${minutes} min, ${agents} other agents`,
  figures: {
    p99: answerTimes!.p99 / 1000,
    memory: mib(maxRss),
    disk: (growthBeside - growthAlone) / (budget * names.length),
    log: mib(maxLogBytes),
    apply: withHostile!.p50 / without!.p50,
  },
});
