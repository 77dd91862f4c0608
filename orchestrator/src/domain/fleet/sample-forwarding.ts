import type { Sample } from '@muster/protocol';
import { agentNames } from '../../store/queries/agents.ts';
import type { Attempt } from '../notifications/delivery.ts';
import type { Context } from '../shared/context.ts';

/** Samples on their way to a database of series elsewhere, once they are stored here. */

export interface ForwardedSample {
  readonly nodeId: string;
  readonly sample: Sample;
}

/** One agent's samples, in the order of time. */
export interface NamedSamples {
  readonly nodeId: string;
  /** Null for an agent that is gone meanwhile. */
  readonly name: string | null;
  readonly samples: readonly Sample[];
}

/** Writes them, once, and says how that went: never rejects. */
export type WriteSeries = (
  batch: readonly NamedSamples[],
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<Attempt>;

/** Puts together what is of one agent, with the name it goes by. */
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
