import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAssignment, uploadModule } from '@muster/protocol/http';
import { root } from '../../tools/suite/cli.ts';
import type { Stage } from '../stage.ts';
import { RealAgents, simulatedTag, startSimulatedAgents } from './agents.ts';
import { checkHistory } from './check-history.ts';
import { applyTokens, Clients, startRuns, writeTags } from './clients.ts';
import { planFaults } from './fault-plan.ts';
import { FaultStage } from './fault-stage.ts';
import { readEverything, settle } from './final-reads.ts';
import type { History, Violation } from './history.ts';
import { Recorder } from './recorder.ts';
import { timesText } from './times.ts';
import { endAccess, followAll, useTerminals } from './watchers.ts';

export interface LoopSizes {
  readonly replicas: number;
  readonly realAgents: number;
  readonly simulatedAgents: number;
  readonly writers: number;
  readonly faults: number;
  /** Mean time between the starts of two faults, in milliseconds. */
  readonly everyMs: number;
  /** Pause between two applies on a real agent, and between two runs on the simulated ones, in milliseconds. */
  readonly applyEveryMs: number;
  readonly runEveryMs: number;
}

export interface LoopResult {
  readonly history: History;
  readonly violations: readonly Violation[];
  /** File with the history, if there are violations; else null. */
  readonly file: string | null;
  /** Distributions of times, to print. */
  readonly times: string;
}

const assignment = 'sims';
const module = JSON.stringify({
  name: 'motd',
  supports: [{ platform: 'linux' }],
  resources: [{ id: 'motd', resource: { 'file-unix': { path: '/etc/motd', content: 'hi' } } }],
});

/**
 * Runs replicas, agents, and clients while faults are injected, and checks the history.
 * @param seed selects the faults
 * @param progress called with a line for each fault
 */
export async function runFaultLoop(
  stage: Stage,
  sizes: LoopSizes,
  seed: number,
  progress: (line: string) => void,
): Promise<LoopResult> {
  const recorder = new Recorder();
  const cluster = await FaultStage.start(stage, sizes.replicas);
  try {
    const history = await record(stage, cluster, recorder, { sizes, seed, progress });
    const violations = checkHistory(history);
    const file = violations.length === 0 ? null : writeHistory(history, violations, seed);
    return { history, violations, file, times: timesText(history) };
  } catch (error) {
    progress(`the history until the error is in ${writeHistory(recorder.entries, [], seed)}`);
    throw error;
  } finally {
    await cluster.end();
  }
}

async function record(
  stage: Stage,
  cluster: FaultStage,
  recorder: Recorder,
  { sizes, seed, progress }: { sizes: LoopSizes; seed: number; progress: (line: string) => void },
): Promise<History> {
  const clients = new Clients(cluster, recorder);
  await clients.signIn();
  const call = clients.throughBalancer();
  const orchestratorKey = cluster.replicas[0]!.orchestrator.publicKey;
  const parts = { stage, recorder, call, port: cluster.agentPort, orchestratorKey };
  const real = new RealAgents(parts);
  await real.start(sizes.realAgents);
  const endSimulated = await startSimulatedAgents(sizes.simulatedAgents, parts);
  const count = sizes.realAgents + sizes.simulatedAgents;
  try {
    await settle(clients, count);
    await call(uploadModule, { body: { name: 'motd', content: module } });
    const selector = Object.entries(simulatedTag)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
    await call(createAssignment, { body: { name: assignment, modules: ['motd'], selector } });
    const nodes = real.agents.map(({ nodeId }) => nodeId);
    const keys = writeTags(clients, nodes, sizes.writers);
    for (const [index, agent] of real.agents.entries())
      applyTokens(clients, { nodeId: agent.nodeId, effects: real.effectsOf(agent) }, index, sizes.applyEveryMs);
    startRuns(clients, assignment, sizes.runEveryMs);
    endAccess(clients);
    const sessions = useTerminals(clients, nodes);
    const { streams, end } = followAll(clients);
    await injectFaults(cluster, recorder, { sizes, seed, progress });
    await clients.stop();
    progress('all faults are repaired; waiting until all work has ended');
    await settle(clients, count);
    await readEverything(clients, { keys, sessions, streams });
    end();
    real.recordEffects();
    return recorder.entries;
  } finally {
    real.end();
    await endSimulated();
  }
}

async function injectFaults(
  cluster: FaultStage,
  recorder: Recorder,
  { sizes, seed, progress }: { sizes: LoopSizes; seed: number; progress: (line: string) => void },
): Promise<void> {
  const began = recorder.now;
  const running: Promise<void>[] = [];
  for (const [index, fault] of planFaults({ seed, ...sizes }).entries()) {
    await sleep(Math.max(0, began + fault.at - recorder.now));
    const { at: _, ...shown } = fault;
    progress(`fault ${index + 1}: ${JSON.stringify(shown)}`);
    running.push(cluster.inject(fault, recorder));
  }
  await Promise.all(running);
}

/** Writes a history as JSON lines, after the violations. @returns the file */
function writeHistory(history: History, violations: readonly Violation[], seed: number): string {
  const folder = join(root, '.cache/faults');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `history-${seed}.jsonl`);
  writeFileSync(file, [...violations, ...history].map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  return file;
}
