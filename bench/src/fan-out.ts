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
 * committed. Compares with `ws` over TLS 1.3 that sends the same bytes to the same number of agents, receives the same bytes, and
 * stores nothing. The agents run the real connection code in separate processes. The rounds of the two servers alternate,
 * so that other load on the machine affects both.
 *
 * Measures first a tenth of the agents and then all of them, and compares the CPU time. `--growth 0` omits the tenth.
 *
 *     node bench/src/fan-out.ts [--agents 10000] [--resources 4] [--rounds 3] [--growth 1] [--json]
 */
const { agents, resources, rounds, growth } = benchOptions({
  numbers: { agents: [10_000, 10], resources: [4, 4], rounds: [3, 1], growth: [1, 1] },
});
const atOnce = 256;
/** Ratio of the two fleet sizes. */
const times = 10;

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
  const orchestrator = await OrchestratorProcess.start();
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
  const server = await ServerProcess.start('bare-server.ts');
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

async function measureOnce(contender: Contender): Promise<Figures> {
  const cpuBefore = contender.usage().cpuSecs;
  const began = performance.now();
  await contender.fanOut();
  return { wallSecs: (performance.now() - began) / 1000, cpuSecs: contender.usage().cpuSecs - cpuBefore };
}

const middle = (all: readonly Figures[]): Figures => ({
  wallSecs: median(all.map(({ wallSecs }) => wallSecs)),
  cpuSecs: median(all.map(({ cpuSecs }) => cpuSecs)),
});

interface Measured {
  agents: number;
  muster: Figures;
  bare: Figures;
  /** Median over all rounds of the ratio of elapsed times. */
  ratio: number;
}

/** Measures both servers with `count` agents each, and prints the figures. */
async function measure(count: number): Promise<Measured> {
  const orchestrator = await orchestratorWith(count);
  // The first apply of each server is a warm-up and does not count.
  await orchestrator.fanOut();
  const operation = await orchestrator.operation();
  const server = await bareWith(count, operation);
  await server.fanOut();
  const pairs: { muster: Figures; bare: Figures }[] = [];
  for (let round = 0; round < rounds; round++) {
    const muster = await measureOnce(orchestrator);
    const bare = await measureOnce(server);
    pairs.push({ muster, bare });
    printProgress(
      `${count} agents, round ${round + 1}: ${muster.wallSecs.toFixed(1)} s against ${bare.wallSecs.toFixed(1)} s, ${muster.cpuSecs.toFixed(2)} against ${bare.cpuSecs.toFixed(2)} CPU s`,
    );
  }
  await server.stop();
  await orchestrator.stop();
  const measured = {
    agents: count,
    muster: middle(pairs.map(({ muster }) => muster)),
    bare: middle(pairs.map(({ bare }) => bare)),
    ratio: median(pairs.map(({ muster, bare }) => muster.wallSecs / bare.wallSecs)),
  };
  print(measured, Buffer.byteLength(operation));
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
        ['orchestrator, through its API, committed', muster.wallSecs, agents / muster.wallSecs, muster.cpuSecs],
        ['bare ws, TLS 1.3, the same bytes', bare.wallSecs, agents / bare.wallSecs, bare.cpuSecs],
      ],
    ),
  );
  console.log(`\n${ratioLine('elapsed time', muster.wallSecs, bare.wallSecs, 's')}`);
  console.log(`${ratioLine('CPU time', muster.cpuSecs, bare.cpuSecs, 's')}\n`);
}

const few = growth === 0 ? null : await measure(Math.ceil(agents / times));
const all = await measure(agents);
const growthOf = (what: string, of: (measured: Measured) => number): Growth[] =>
  few === null ? [] : [{ what, unit: 's', points: [few, all].map((one) => [one.agents, of(one)]) }];
process.exitCode = conclude('fan-out', {
  sizes: `${agents} agents, ${resources} resources each, ${rounds} rounds`,
  figures: {
    time: all.ratio,
    growth: few === null ? notJudged('omitted by --growth 0') : all.muster.cpuSecs / few.muster.cpuSecs,
  },
  growth: [
    ...growthOf('time of an apply', ({ muster }) => muster.wallSecs),
    ...growthOf('time of an apply, bare ws', ({ bare }) => bare.wallSecs),
    ...growthOf('CPU time of an apply', ({ muster }) => muster.cpuSecs),
    ...growthOf('CPU time of an apply, bare ws', ({ bare }) => bare.cpuSecs),
  ],
});
