import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Sample } from '@muster/protocol';
import { agentSeries } from '../../domain/fleet/agent-series.ts';
import type { AgentStanding } from '../../domain/fleet/metrics.ts';

/**
 * Writes the metrics of agents' machines in the Prometheus text format. Does not use prom-client, which would store
 * every series permanently and write all series in one event-loop turn.
 */

export const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** Maximum number of lines written per event-loop turn. */
const linesPerTurn = 1000;

const labelValue = (text: string): string => text.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`));

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly of: (agent: AgentStanding) => number | null;
}

const ofSample =
  (of: (sample: Sample) => number | null) =>
  ({ sample }: AgentStanding) =>
    sample === null ? null : of(sample);

const families: readonly Family[] = [
  {
    name: 'muster_agent_up',
    type: 'gauge',
    help: '1 while the agent is connected.',
    of: ({ connected }) => (connected ? 1 : 0),
  },
  {
    name: 'muster_agent_sample_timestamp_seconds',
    type: 'gauge',
    help: 'Time of the latest sample, by the agent’s clock.',
    of: ofSample((sample) => sample.collected_at),
  },
  ...agentSeries.map(({ name, type, help, of }) => ({ name, type, help, of: ofSample(of) })),
];

/** Yields the text in chunks, grouped by metric as the format requires. Yields to the event loop between chunks. */
export async function* exposeAgents(agents: readonly AgentStanding[]): AsyncGenerator<string> {
  const labels: string[] = [];
  for (const [index, { node_id, name }] of agents.entries()) {
    if (index > 0 && index % linesPerTurn === 0) await nextTurn();
    labels.push(`{node_id="${labelValue(node_id)}",name="${labelValue(name)}"} `);
  }
  for (const { name, type, help, of } of families) {
    let piece = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [index, agent] of agents.entries()) {
      if (index > 0 && index % linesPerTurn === 0) {
        yield piece;
        piece = '';
        await nextTurn();
      }
      const value = of(agent);
      if (value !== null) piece += `${name}${labels[index]}${value}\n`;
    }
    yield piece;
    await nextTurn();
  }
}
