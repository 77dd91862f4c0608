import type { Summary } from '@muster/protocol';
import type { OffAgent, OffReason } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

/** What is off with agents, in the order and words in which a person looks at it. Pure. */

export const reasonLooks: Readonly<Record<OffReason, { readonly word: string; readonly tone: Tone }>> = {
  apply_failed: { word: 'apply failed', tone: 'bad' },
  drifted: { word: 'drifted', tone: 'warn' },
  drift_failed: { word: 'check failed', tone: 'bad' },
  unapplied: { word: 'not applied', tone: 'warn' },
  pending_removals: { word: 'to remove', tone: 'neutral' },
};

/** Deviations from what was applied, and from audit assignments, that count. */
const openDrift = ({ drift }: OffAgent) => drift.filter(({ accepted }) => accepted === null);

/** What one can accept: what counts, and may be repaired or not. */
export const acceptable = (agent: OffAgent): readonly string[] => openDrift(agent).map(({ drift_id }) => drift_id);

/** Whether an apply does anything about it: of an audit assignment none does. */
export const canRepair = (agent: OffAgent): boolean =>
  agent.failed_operation !== null ||
  agent.unapplied > 0 ||
  agent.pending_removals > 0 ||
  agent.drift.some(({ assignment, accepted }) => assignment === null && accepted === null);

const counts = ({ changed, removed, failed, skipped }: Summary): readonly number[] => [
  changed,
  removed,
  failed,
  skipped,
];

/** What agents that are off alike have in common, as far as the list tells: reasons, counts, the error. */
const likeness = (agent: OffAgent, name: string): string =>
  JSON.stringify([
    agent.reasons,
    agent.drift.map(({ assignment, summary, accepted }) => [assignment, counts(summary), accepted !== null]),
    agent.failed_operation === null
      ? null
      : [agent.failed_operation.status, agent.failed_operation.error?.replaceAll(name, '') ?? null],
    agent.unapplied,
    agent.pending_removals,
    agent.modules,
  ]);

export interface OffGroup {
  readonly key: string;
  readonly agents: readonly OffAgent[];
}

/** So few are listed one by one. */
const fewAgents = 25;

/** Many together where they are off alike, in the order of their worst; few each by themselves. */
export function groupOff(agents: readonly OffAgent[]): readonly OffGroup[] {
  if (agents.length <= fewAgents) return agents.map((agent) => ({ key: agent.node_id, agents: [agent] }));
  const groups = new Map<string, OffAgent[]>();
  for (const agent of agents) {
    const key = likeness(agent, agent.name ?? agent.node_id);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [agent]);
    else group.push(agent);
  }
  return [...groups].map(([key, members]) => ({ key, agents: members }));
}
