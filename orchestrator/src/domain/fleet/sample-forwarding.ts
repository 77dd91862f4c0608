import type { Sample } from '@muster/protocol';
import { agentNames } from '../../store/queries/agents/agents.ts';
import type { Attempt } from '../notifications/delivery.ts';
import type { Context } from '../shared/context.ts';

/** Forwards stored samples to an external time series database. */

export interface ForwardedSample {
  readonly nodeId: string;
  readonly sample: Sample;
}

/** An agent's samples in chronological order, with its name. */
export interface NamedSamples {
  readonly nodeId: string;
  /** Null if the agent was removed after the sample was stored. */
  readonly name: string | null;
  readonly samples: readonly Sample[];
}

/** Writes a batch in one attempt, and returns the result. Never rejects. */
export type WriteSeries = (
  batch: readonly NamedSamples[],
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<Attempt>;

/** Groups samples by agent and adds the agents' names. */
export async function withNames({ db }: Context, batch: readonly ForwardedSample[]): Promise<NamedSamples[]> {
  const byAgent = new Map<string, Sample[]>();
  for (const { nodeId, sample } of batch) {
    const samples = byAgent.get(nodeId);
    if (samples) samples.push(sample);
    else byAgent.set(nodeId, [sample]);
  }
  const rows = await db.all(agentNames, { ids: [...byAgent.keys()] });
  const names = new Map(rows.map(({ node_id, name }) => [node_id, name]));
  return [...byAgent].map(([nodeId, samples]) => ({ nodeId, name: names.get(nodeId) ?? null, samples }));
}
