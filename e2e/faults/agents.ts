import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@muster/protocol/client';
import { createEnrolmentToken } from '@muster/protocol/http';
import { type SimulatedAgent, simulatedFleet } from '../simulated-fleet.ts';
import type { AgentProcess, Stage } from '../stage.ts';
import type { Recorder } from './recorder.ts';

export interface FleetParts {
  readonly stage: Stage;
  readonly recorder: Recorder;
  /** Client of an admin. */
  readonly call: Client;
  /** Port of the balancer for agents. */
  readonly port: number;
  readonly orchestratorKey: string;
}

/** Tag of simulated agents, by which an assignment selects them. */
export const simulatedTag = { role: 'sim' };

/** Milliseconds between two checks of the links of real agents. */
const lookMs = 50;
/** Number of real agents that start at the same time. */
const atOnce = 4;

/** Real agents, with terminals, whose links and effects are recorded. */
export class RealAgents {
  readonly agents: AgentProcess[] = [];
  readonly #parts: FleetParts;
  #ended = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  async start(count: number): Promise<void> {
    const { stage, call, port, orchestratorKey } = this.#parts;
    const config = join(stage.dir, 'agent.yaml');
    writeFileSync(config, 'remote_terminal: { enabled: true, shell: /bin/sh }\n');
    for (let from = 0; from < count; from += atOnce)
      await Promise.all(
        Array.from({ length: Math.min(atOnce, count - from) }, async (_, index) => {
          const name = `real-${from + index}`;
          const { token } = await call(createEnrolmentToken, { body: { approve: true, name } });
          const flags = ['--config', config, '--orchestrator-key', orchestratorKey, '--token', token];
          const agent = stage.agentAt(name, [`127.0.0.1:${port}`, ...flags]);
          await agent.start();
          this.agents.push(agent);
        }),
      );
    void this.#watchLinks();
  }

  /** Records when agents log that they are connected, and that they are not. */
  async #watchLinks(): Promise<void> {
    const seen = new Map<AgentProcess, { connected: number; linked: boolean }>();
    while (!this.#ended) {
      for (const agent of this.agents) {
        const connected = agent.program.events('connected').length;
        const { connected: former, linked } = seen.get(agent) ?? { connected: 0, linked: false };
        const isLost = linked && connected === former && hasLostLink(agent.program.lastLines(5));
        if (connected > former) this.#record(agent, true);
        else if (isLost) this.#record(agent, false);
        seen.set(agent, { connected, linked: connected > former || (linked && !isLost) });
      }
      await sleep(lookMs);
    }
  }

  #record({ nodeId }: AgentProcess, linked: boolean): void {
    const { recorder } = this.#parts;
    recorder.record({ type: 'link', at: recorder.now, node: nodeId, linked });
  }

  /** Returns the file to which scripts of an agent append their tokens. */
  effectsOf(agent: AgentProcess): string {
    return join(this.#parts.stage.dir, `effects-${agent.nodeId}`);
  }

  /** Records what the scripts of the agents have executed. */
  recordEffects(): void {
    for (const agent of this.agents) {
      const file = this.effectsOf(agent);
      const tokens = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
      for (const token of tokens)
        this.#parts.recorder.record({ type: 'effect', node: agent.nodeId, operation: null, token });
    }
  }

  end(): void {
    this.#ended = true;
  }
}

/** Reports whether an agent has logged that it is not connected, and not that it is connected again. */
const hasLostLink = (lines: readonly string[]): boolean =>
  lines.findLastIndex((line) => line.includes('"not connected"')) >
  lines.findLastIndex((line) => line.includes('"event":"connected"'));

/** Bounds of the time that a simulated agent waits before it reconnects, and maximum duration of its operations. */
const pauseMs = [20, 500] as const;
const operationMs = 200;
/** Maximum number of agents that a token enrolls. */
const usesOfToken = 10_000;

/** Starts simulated agents, and records their links and effects. @returns a function that ends them */
export async function startSimulatedAgents(count: number, parts: FleetParts): Promise<() => Promise<void>> {
  const { call, port, recorder } = parts;
  const body = { approve: true, tags: simulatedTag, uses: usesOfToken };
  const { token } = await call(createEnrolmentToken, { body });
  const executed = (node: string, operation: string) =>
    recorder.record({ type: 'effect', node, operation, token: null });
  const fleet: SimulatedAgent[] = await simulatedFleet(
    count,
    async () => token,
    () => port,
    {
      onStarted: executed,
      onRepeated: executed,
      onEnded: () => {},
      onLink: (node, linked) => recorder.record({ type: 'link', at: recorder.now, node, linked }),
      pauseMs: () => pauseMs[0] + Math.random() * (pauseMs[1] - pauseMs[0]),
      judge: () => ({ status: 'succeeded', afterMs: Math.random() * operationMs }),
    },
  );
  const running = fleet.map((agent) => agent.run());
  return async () => {
    for (const agent of fleet) agent.stop();
    await Promise.all(running);
  };
}
