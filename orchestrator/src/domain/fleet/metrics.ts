import { MusterError, type Sample } from '@muster/protocol';
import { maxSamples } from '@muster/protocol/http';
import type { SampleStore } from '../../store/samples/samples.ts';
import { listAgentNames, requireAgent } from '../agents/agents.ts';
import { type Context, seconds } from '../shared/context.ts';

/** Stores samples from machines, lists them individually or as averages, and prunes expired samples. */

/** Maximum seconds by which a sample may be ahead of this clock. */
const maxAheadSecs = 3600;

export interface AgentStanding {
  readonly node_id: string;
  readonly name: string;
  readonly connected: boolean;
  /** The newest sample; null if the agent has no recent one. */
  readonly sample: Sample | null;
}

export interface Metrics {
  /** Number of samples dropped because of their timestamps. */
  readonly passedOver: number;
  /**
   * Stores one agent's samples. Drops samples that are too old or too far in the future.
   * @throws MusterError storage_full, storage_unavailable if the write fails; no sample is then stored
   */
  record(nodeId: string, samples: readonly Sample[]): Promise<void>;
  /**
   * Lists an agent's samples.
   * @throws MusterError agent_not_found
   */
  list(
    idOrName: string,
    request: { since?: number | undefined; limit?: number | undefined; step?: number | undefined },
  ): Promise<{ node_id: string; samples: Sample[] }>;
  /**
   * Returns an agent's newest sample; null if it has none.
   * @throws MusterError agent_not_found
   */
  latest(idOrName: string): Promise<Sample | null>;
  /**
   * Returns the newest samples by node id, for agents that match the selector.
   * @throws MusterError selector_invalid
   */
  latestOf(filter: string | undefined): Promise<Record<string, Sample>>;
  /**
   * Returns every approved agent that matches the selector, with its newest sample, or null if that sample is older
   * than `recentSecs`. Compensates for the machines' clock skew.
   * @throws MusterError selector_invalid
   */
  standings(filter: string | undefined, recentSecs: number): Promise<AgentStanding[]>;
  /** Drops expired samples. Logs only the first of consecutive failures. */
  prune(): Promise<void>;
}

/** @param stored called with the stored samples; must neither wait nor throw */
export function createMetrics(
  context: Context,
  samples: SampleStore,
  retentionSecs: number,
  stored: (nodeId: string, samples: readonly Sample[]) => void = () => {},
): Metrics {
  const oldest = () => seconds(context.now()) - retentionSecs;
  let passedOver = 0;
  let isFailing = false;
  return {
    get passedOver() {
      return passedOver;
    },

    async record(nodeId, given) {
      const from = Math.max(0, oldest());
      const until = seconds(context.now()) + maxAheadSecs;
      const accepted = given.filter(({ collected_at }) => collected_at >= from && collected_at <= until);
      await samples.add(nodeId, accepted);
      passedOver += given.length - accepted.length;
      if (accepted.length > 0) stored(nodeId, accepted);
    },

    async list(idOrName, { since = 0, limit = maxSamples, step }) {
      const { node_id } = await requireAgent(context, idOrName);
      const from = Math.max(since, oldest());
      const found =
        step === undefined
          ? await samples.since(node_id, from, limit)
          : await samples.averages(node_id, from, step, limit);
      return { node_id, samples: found };
    },

    async latest(idOrName) {
      const { node_id } = await requireAgent(context, idOrName);
      return (await samples.latest([node_id], oldest())).get(node_id) ?? null;
    },

    async latestOf(filter) {
      const agents = await listAgentNames(context, { filter });
      const found = await samples.latest(
        agents.map(({ node_id }) => node_id),
        oldest(),
      );
      return Object.fromEntries(found);
    },

    async standings(filter, recentSecs) {
      const agents = await listAgentNames(context, { status: 'approved', filter });
      const { presence } = context;
      const since = seconds(context.now()) - recentSecs;
      const furthestBehind = agents.reduce(
        (lowest, { node_id }) => Math.min(lowest, presence.clockAheadSecs(node_id)),
        0,
      );
      const found = await samples.latest(
        agents.map(({ node_id }) => node_id),
        Math.max(oldest(), since + furthestBehind),
      );
      return agents.map(({ node_id, name }) => {
        const sample = found.get(node_id);
        const isRecent = sample !== undefined && sample.collected_at - presence.clockAheadSecs(node_id) >= since;
        // Every approved agent has a name.
        return {
          node_id,
          name: name ?? '',
          connected: presence.isConnected(node_id),
          sample: isRecent ? sample : null,
        };
      });
    },

    async prune() {
      try {
        const dropped = await samples.dropBefore(oldest());
        if (dropped > 0) context.log.debug({ slices: dropped }, 'dropped old samples');
        isFailing = false;
      } catch (error) {
        if (!(error instanceof MusterError)) throw error;
        if (!isFailing) context.log.warn({ err: error }, 'failed to drop old samples; will retry');
        isFailing = true;
      }
    },
  };
}
