import type { Run } from '@muster/protocol/http';
import { AgentFleet } from './load/agent-fleet.ts';
import { applyAssignedFiles, assignFiles } from './load/files-module.ts';
import { conclude } from './run/conclude.ts';
import { notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import type { Growth } from './run/results.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { ServerProcess } from './servers/server-process.ts';

/**
 * Measures an apply that changes nothing on all agents, through the API of a real orchestrator, until all results are
 * committed. The baseline is a `ws` server over TLS 1.3 that exchanges the same bytes with the same number of agents,
 * and stores nothing. The agents run the real connection code in separate processes. The rounds of the two servers
 * alternate, so that other load on the machine affects both.
 *
 * Compares the CPU time of all agents with that of a tenth of them, which apply ten times in each round: other load, garbage
 * collection, and the length of the history then affect both alike. `--growth 0` omits the tenth.
 *
 *     node bench/src/fan-out.ts [--agents 10000] [--resources 4] [--rounds 3] [--growth 1] [--json]
 */
const { agents, resources, rounds, growth } = benchOptions({
  numbers: { agents: [10_000, 10], resources: [4, 4], rounds: [3, 1], growth: [1, 1] },
});
const atOnce = 256;
/** Ratio of the two fleet sizes. */
const times = 10;
/**
 * The servers use V8's default young generation, as the shipped programs do, because this bench does not measure
 * memory.
 */
const flags: readonly string[] = [];

interface Figures {
  wallSecs: number;
  cpuSecs: number;
}

/** A server with connected agents. */
interface Contender {
  usage(): { cpuSecs: number };
  fanOut(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts an orchestrator with agents. `operation` returns the JSON text of the last operation that an agent received. */
async function orchestratorWith(count: number): Promise<Contender & { operation(): Promise<string> }> {
  const orchestrator = await OrchestratorProcess.start({ flags });
  const { call } = orchestrator;
  await assignFiles(call, resources, `${'x'.repeat(200)}\n`);
  const fleet = new AgentFleet(count);
  const secs = await fleet.enroll(orchestrator, atOnce);
  printProgress(`${count} agents connected to the orchestrator within ${secs.toFixed(0)} s`);
  return {
    usage: () => orchestrator.usage,
    fanOut: async () => requireAll(await applyAssignedFiles(call), count),
    operation: () => fleet.lastOperation(),
    stop: async () => {
      await fleet.stop();
      await orchestrator.stop();
    },
  };
}

function requireAll(run: Run, count: number): void {
  const succeeded = run.results.filter(({ status }) => status === 'succeeded').length;
  if (succeeded === count) return;
  const other = run.results.find(({ status }) => status !== 'succeeded');
  throw new Error(`only ${succeeded} of ${count} agents succeeded; first other result: ${JSON.stringify(other)}`);
}

async function bareWith(count: number, operation: string): Promise<Contender> {
  const server = await ServerProcess.start('bare-server.ts', flags);
  const fleet = new AgentFleet(count);
  await fleet.connect({ ...server.address, token: null }, atOnce);
  printProgress(`${count} agents connected to bare ws`);
  return {
    usage: () => server.usage,
    fanOut: () => server.order({ type: 'fan_out', text: operation }),
    stop: async () => {
      await fleet.stop();
      await server.stop();
    },
  };
}

/** Both servers with the same number of agents. */
interface Fleets {
  agents: number;
  muster: Contender;
  bare: Contender;
  /** Size of an operation in bytes. */
  bytes: number;
  /** Figures for each round. */
  rounds: { muster: Figures; bare: Figures }[];
}

/** Starts both servers. The first apply of each is a warm-up and does not count. */
async function fleetsOf(count: number): Promise<Fleets> {
  const muster = await orchestratorWith(count);
  await muster.fanOut();
  const operation = await muster.operation();
  const bare = await bareWith(count, operation);
  await bare.fanOut();
  return { agents: count, muster, bare, bytes: Buffer.byteLength(operation), rounds: [] };
}

/** Measures applies in sequence. Returns the means. */
async function measureApplies(contender: Contender, applies: number): Promise<Figures> {
  const cpuBefore = contender.usage().cpuSecs;
  const began = performance.now();
  for (let apply = 0; apply < applies; apply++) await contender.fanOut();
  return {
    wallSecs: (performance.now() - began) / 1000 / applies,
    cpuSecs: (contender.usage().cpuSecs - cpuBefore) / applies,
  };
}

/** Gives every fleet the same total number of operations, regardless of its size. */
async function measureRound(fleets: Fleets, round: number): Promise<void> {
  const applies = Math.round(agents / fleets.agents);
  const muster = await measureApplies(fleets.muster, applies);
  const bare = await measureApplies(fleets.bare, applies);
  fleets.rounds.push({ muster, bare });
  printProgress(
    `${fleets.agents} agents, round ${round + 1}: ${muster.wallSecs.toFixed(1)} s vs. ${bare.wallSecs.toFixed(1)} s, ${muster.cpuSecs.toFixed(2)} vs. ${bare.cpuSecs.toFixed(2)} CPU s`,
  );
}

const middle = (all: readonly Figures[]): Figures => ({
  wallSecs: median(all.map(({ wallSecs }) => wallSecs)),
  cpuSecs: median(all.map(({ cpuSecs }) => cpuSecs)),
});

interface Measured {
  agents: number;
  muster: Figures;
  bare: Figures;
}

/** Stops the servers, and prints the medians of the rounds. */
async function concluded(fleets: Fleets): Promise<Measured> {
  await fleets.bare.stop();
  await fleets.muster.stop();
  const measured = {
    agents: fleets.agents,
    muster: middle(fleets.rounds.map(({ muster }) => muster)),
    bare: middle(fleets.rounds.map(({ bare }) => bare)),
  };
  print(measured, fleets.bytes);
  return measured;
}

function print({ agents, muster, bare }: Measured, bytes: number): void {
  console.log(
    `${agents} agents, ${resources} resources each (${(bytes / 1024).toFixed(1)} KiB sent), median of ${rounds} rounds\n`,
  );
  console.log(
    table(
      ['server', 's for all', 'agents/s', 'CPU s'],
      [
        ['orchestrator (through its API, until committed)', muster.wallSecs, agents / muster.wallSecs, muster.cpuSecs],
        ['bare ws, TLS 1.3, the same bytes', bare.wallSecs, agents / bare.wallSecs, bare.cpuSecs],
      ],
    ),
  );
  console.log(`\n${ratioLine('elapsed time', muster.wallSecs, bare.wallSecs, 's')}`);
  console.log(`${ratioLine('CPU time', muster.cpuSecs, bare.cpuSecs, 's')}\n`);
}

const fleets: Fleets[] = [];
for (const count of growth === 0 ? [agents] : [Math.ceil(agents / times), agents]) fleets.push(await fleetsOf(count));
for (let round = 0; round < rounds; round++) for (const each of fleets) await measureRound(each, round);
const measured: Measured[] = [];
for (const each of fleets) measured.push(await concluded(each));
const all = fleets.at(-1)!;
const few = fleets.at(-2);
const growthOf = (what: string, of: (measured: Measured) => number): Growth[] =>
  few === undefined ? [] : [{ what, unit: 's', points: measured.map((one) => [one.agents, of(one)]) }];
process.exitCode = conclude('fan-out', {
  sizes: `${agents} agents, ${resources} resources each, ${rounds} rounds`,
  figures: {
    time: median(all.rounds.map(({ muster, bare }) => muster.wallSecs / bare.wallSecs)),
    growth:
      few === undefined
        ? notJudged('omitted by --growth 0')
        : median(all.rounds.map(({ muster }, round) => muster.cpuSecs / few.rounds[round]!.muster.cpuSecs)),
  },
  growth: [
    ...growthOf('time of an apply', ({ muster }) => muster.wallSecs),
    ...growthOf('time of an apply, bare ws', ({ bare }) => bare.wallSecs),
    ...growthOf('CPU time of an apply', ({ muster }) => muster.cpuSecs),
    ...growthOf('CPU time of an apply, bare ws', ({ bare }) => bare.cpuSecs),
  ],
});
