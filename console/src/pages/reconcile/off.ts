import type { Summary } from '@muster/protocol';
import type { OffAgent, OffReason } from '@muster/protocol/http';
import type { Tone } from '../../parts/badge.tsx';

/** Labels and grouping of agents that are out of sync. Pure. */

export const reasonTones: Readonly<Record<OffReason, Tone>> = {
  apply_failed: 'bad',
  drifted: 'warn',
  drift_failed: 'bad',
  unapplied: 'warn',
  pending_removals: 'info',
};

/** Drift that is not accepted, including drift from audit assignments. */
const openDrift = ({ drift }: OffAgent) => drift.filter(({ accepted }) => accepted === null);

/** Ids of drift records that can be accepted. */
export const acceptable = (agent: OffAgent): readonly string[] => openDrift(agent).map(({ drift_id }) => drift_id);

/** Whether an apply can repair the agent. Drift of an audit assignment is never repaired. */
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

/** The key by which agents are grouped: reasons, counts, and the error without the agent's name. */
const groupKey = (agent: OffAgent, name: string): string =>
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

/** Up to this number, agents are listed one by one. */
const maxUngrouped = 25;

/** Groups many agents with the same reasons, in the order of their first member; leaves few agents ungrouped. */
export function groupOff(agents: readonly OffAgent[]): readonly OffGroup[] {
  if (agents.length <= maxUngrouped) return agents.map((agent) => ({ key: agent.node_id, agents: [agent] }));
  const groups = new Map<string, OffAgent[]>();
  for (const agent of agents) {
    const key = groupKey(agent, agent.name ?? agent.node_id);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [agent]);
    else group.push(agent);
  }
  return [...groups].map(([key, members]) => ({ key, agents: members }));
}
