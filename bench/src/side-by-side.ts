import { setTimeout as sleep } from 'node:timers/promises';
import { derivedRoot } from '../../e2e/hosts/derived-root.ts';
import { TestHosts } from '../../e2e/hosts/test-hosts.ts';
import { missing } from '../../e2e/requirements.ts';
import { AgentFleet } from './load/agent-fleet.ts';
import { connectMeshAgents } from './peers/mesh-agents.ts';
import { MeshCentralProcess, meshCentralVersion } from './peers/mesh-central.ts';
import { createMeshIdentities } from './peers/mesh-identity.ts';
import { runSession } from './peers/run-session.ts';
import type { ScrapeFigures } from './peers/samples-session.ts';
import { conclude } from './run/conclude.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { table } from './run/report.ts';
import { type Comparison, comparisonHeadings, comparisonRows } from './run/results.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';
import type { Usage } from './servers/server-process.ts';

/**
 * Compares the orchestrator with Prometheus and then with MeshCentral, each with the same number of simulated machines.
 *
 * - Samples: CPU time and memory. Each machine sends a sample with the same measures every half minute: to Muster over its
 *   TLS link, to Prometheus when it scrapes the machines over HTTP.
 * - Idle agents: CPU time to accept a new agent, and memory with all agents. Both servers check a signature over
 *   TLS and store the agent.
 *
 *     npm run bench -- side-by-side [--machines 1000] [--secs 120]
 *
 * Requires root, as the end-to-end tests with test hosts do. The first run fetches Prometheus from a Debian mirror, and
 * MeshCentral from the npm registry.
 */
const { machines, secs, interval, smoke } = benchOptions({
  numbers: { machines: [1000, 4], secs: [120, 1], interval: [30, 1] },
});
/** Seconds between two messages of an agent. Each message contains the samples since the previous one. */
const poll = 2 * interval;

interface SampleCost {
  cpuMs: number;
  memoryMb: number;
}

async function measureMuster(): Promise<SampleCost> {
  process.env.MUSTER_METRICS_POLL_INTERVAL = String(poll);
  const server = await OrchestratorProcess.start();
  const fleet = new AgentFleet(machines);
  await fleet.enroll(server, 64, true);
  await sleep(poll * 1000);
  const before = server.usage.cpuSecs;
  await sleep(secs * 1000);
  const { cpuSecs, rss } = server.usage;
  await fleet.stop();
  await server.stop();
  return { cpuMs: ((cpuSecs - before) * 1000) / ((machines * secs) / interval), memoryMb: rss / 1e6 };
}

/**
 * Builds a root for test hosts with Prometheus installed and its systemd unit masked, because the bench starts
 * Prometheus.
 */
const prometheusRoot = (): Promise<string> =>
  derivedRoot({
    name: 'prometheus',
    packages: ['prometheus'],
    finish: 'ln -sf /dev/null "$new/etc/systemd/system/prometheus.service"',
  });

async function measurePrometheus(): Promise<SampleCost & { version: string }> {
  const hosts = await TestHosts.open({ base: await prometheusRoot(), inMemory: false });
  try {
    const machine = await hosts.start('prometheus');
    const sizes = [machines, interval, secs].map(String);
    const { cpuSecs, scrapes, rss, version } = (await runSession(
      machine,
      'samples-session.ts',
      ...sizes,
    )) as ScrapeFigures;
    return { cpuMs: (cpuSecs * 1000) / scrapes, memoryMb: rss / 1e6, version };
  } finally {
    await hosts.end();
  }
}

interface IdleCost {
  acceptMs: number;
  memoryMb: number;
}

/** Number of agents that connect at the same time. */
const atOnce = 16;
/** Seconds for the server to finish processing new agents. */
const settleSecs = Math.min(5, secs);

/** Measures a server while all agents connect, and afterward. */
async function measureIdle(server: { readonly usage: Usage }, connect: () => Promise<unknown>): Promise<IdleCost> {
  const before = server.usage;
  await connect();
  await sleep(settleSecs * 1000);
  const after = server.usage;
  return {
    acceptMs: ((after.cpuSecs - before.cpuSecs) * 1000) / machines,
    memoryMb: after.rss / 1e6,
  };
}

async function measureIdleMuster(): Promise<IdleCost> {
  const server = await OrchestratorProcess.start();
  const fleet = new AgentFleet(machines);
  const cost = await measureIdle(server, () => fleet.enroll(server, atOnce));
  await fleet.stop();
  await server.stop();
  return cost;
}

async function measureIdleMeshCentral(): Promise<IdleCost> {
  const identities = await createMeshIdentities(machines);
  const server = await MeshCentralProcess.start();
  const links: { terminate(): void }[] = [];
  const cost = await measureIdle(server, async () => {
    links.push(...(await connectMeshAgents(server.port, identities, atOnce)));
  });
  for (const link of links) link.terminate();
  await server.stop();
  return cost;
}

const reason = missing('linux', 'root', 'namespaces', 'hosts');
const muster = await measureMuster();
printProgress(`Muster: ${muster.cpuMs.toFixed(3)} ms of CPU time for each sample, ${muster.memoryMb.toFixed(0)} MB`);
const prometheus = smoke || reason !== null ? null : await measurePrometheus();
if (prometheus !== null)
  printProgress(`Prometheus: ${prometheus.cpuMs.toFixed(3)} ms of CPU time, ${prometheus.memoryMb.toFixed(0)} MB`);

const idle = await measureIdleMuster();
printProgress(`Muster: ${idle.acceptMs.toFixed(2)} ms to accept an agent, ${idle.memoryMb.toFixed(0)} MB`);
const meshCentral = smoke || reason !== null ? null : await measureIdleMeshCentral();
if (meshCentral !== null)
  printProgress(`MeshCentral: ${meshCentral.acceptMs.toFixed(2)} ms, ${meshCentral.memoryMb.toFixed(0)} MB`);

const peer = prometheus === null ? 'Prometheus' : `Prometheus ${prometheus.version}`;
const why = reason ?? (smoke ? 'smoke run' : null);
const comparisons: Comparison[] = [
  {
    what: 'CPU time for each sample of a machine, ms',
    muster: muster.cpuMs,
    peer,
    value: prometheus?.cpuMs ?? null,
    reason: why,
  },
  {
    what: `memory with ${machines} machines, MB`,
    muster: muster.memoryMb,
    peer,
    value: prometheus?.memoryMb ?? null,
    reason: why,
  },
  {
    what: 'CPU time to accept a new agent, ms',
    muster: idle.acceptMs,
    peer: `MeshCentral ${meshCentralVersion}`,
    value: meshCentral?.acceptMs ?? null,
    reason: why,
  },
  {
    what: `memory with ${machines} idle agents, MB`,
    muster: idle.memoryMb,
    peer: `MeshCentral ${meshCentralVersion}`,
    value: meshCentral?.memoryMb ?? null,
    reason: why,
  },
];
console.log(table(comparisonHeadings, comparisonRows(comparisons)));
process.exitCode = conclude('side-by-side', {
  sizes: `${machines} machines, ${secs} s`,
  figures: {},
  comparisons,
});
