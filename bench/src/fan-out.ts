import { applyAssignment, createAssignment, type Run, uploadModule } from '@muster/protocol/http';
import { AgentFleet } from './load/agent-fleet.ts';
import { benchOptions } from './run/options.ts';
import { atMost, conclude, ratioLine, table } from './run/report.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import { ServerProcess } from './servers/server-process.ts';

/**
 * Measures an apply that changes nothing on all agents, through the API of a real orchestrator, until all results are
 * committed. Compares with `ws` over TLS 1.3 that sends the same bytes to as many agents, receives the same bytes, and
 * stores nothing. The agents run the real connection code in separate processes.
 *
 *     node bench/src/fan-out.ts [--agents 2000] [--resources 4] [--rounds 3] [--json]
 */
const { agents, resources, rounds } = benchOptions({
  numbers: { agents: [2000, 4], resources: [4, 4], rounds: [3, 1] },
});
const atOnce = 256;

interface Figures {
  wallSecs: number;
  cpuSecs: number;
}

/** Returns the figures of the round with the median elapsed time. The first round is a warm-up and does not count. */
async function measure(usage: () => { cpuSecs: number }, fanOut: () => Promise<void>): Promise<Figures> {
  const all: Figures[] = [];
  for (let round = 0; round <= rounds; round++) {
    const cpuBefore = usage().cpuSecs;
    const began = performance.now();
    await fanOut();
    const wallSecs = (performance.now() - began) / 1000;
    if (round > 0) all.push({ wallSecs, cpuSecs: usage().cpuSecs - cpuBefore });
  }
  return all.sort((a, b) => a.wallSecs - b.wallSecs)[Math.floor(all.length / 2)]!;
}

const moduleText = () => {
  const files = Array.from(
    { length: resources },
    (_, i) =>
      `  - { id: f${i}, resource: { file-unix: { path: /srv/bench/${i}, content: "${'x'.repeat(200)}\\n", mode: "0644" } } }`,
  );
  return `name: bench\nsupports: [{ platform: linux }]\nresources:\n${files.join('\n')}\n`;
};

/** Measures the orchestrator. @returns the figures, and the JSON text of the operation that an agent received */
async function measureOrchestrator(): Promise<{ figures: Figures; operation: string }> {
  const orchestrator = await OrchestratorProcess.start();
  const { call } = orchestrator;
  const token = await orchestrator.enrolmentToken(agents);
  await call(uploadModule, { body: { name: 'bench', content: moduleText() } });
  await call(createAssignment, { body: { name: 'bench', modules: ['bench'], selector: 'bench=yes' } });
  const fleet = new AgentFleet(agents);
  await fleet.connect({ host: '127.0.0.1', ...orchestrator.address, token }, atOnce);
  const figures = await measure(
    () => orchestrator.usage,
    async () => requireAll((await call(applyAssignment, { params: { name: 'bench' } })) as Run),
  );
  const operation = await fleet.lastOperation();
  await fleet.stop();
  await orchestrator.stop();
  return { figures, operation };
}

function requireAll(run: Run): void {
  const succeeded = run.results.filter(({ status }) => status === 'succeeded').length;
  if (succeeded === agents) return;
  const other = run.results.find(({ status }) => status !== 'succeeded');
  throw new Error(`only ${succeeded} of ${agents} agents succeeded; one that did not: ${JSON.stringify(other)}`);
}

async function measureBare(operation: string): Promise<Figures> {
  const server = await ServerProcess.start('bare-server.ts');
  const fleet = new AgentFleet(agents);
  await fleet.connect({ host: '127.0.0.1', ...server.address, token: null }, atOnce);
  const figures = await measure(
    () => server.usage,
    () => server.order({ type: 'fan_out', text: operation }),
  );
  await fleet.stop();
  await server.stop();
  return figures;
}

const { figures: muster, operation } = await measureOrchestrator();
const bare = await measureBare(operation);
const sentKb = Buffer.byteLength(operation) / 1024;
console.log(
  `${agents} agents, ${resources} resources each (${sentKb.toFixed(1)} KiB sent), median of ${rounds} rounds\n`,
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
console.log(`\n${ratioLine('CPU time', muster.cpuSecs, bare.cpuSecs, 's')}`);
process.exitCode = conclude('fan-out', [atMost('time for all agents', muster.wallSecs / bare.wallSecs, 3, '×')]);
