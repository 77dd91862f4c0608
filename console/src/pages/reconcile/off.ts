import { type OffAgent, offReasons } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { findingsOf, type OffFinding } from '../../../../client/src/reason-words.ts';
import { compareNames } from '../../parts/table/compare-names.ts';
import { issuesOf } from './issues.ts';

/** Labels and groups out-of-sync agents. */

/** The lists of the page of agents that are out of sync. */
export type OffList = 'off' | 'outdated' | 'accepted';

/** Reports whether an agent belongs to a list. Drift may be accepted on an agent that differs in other resources. */
export const isIn: Readonly<Record<OffList, (agent: OffAgent) => boolean>> = {
  off: (agent) => syncStateOf(agent, true) === 'out_of_sync',
  outdated: (agent) => syncStateOf(agent, true) === 'outdated',
  accepted: ({ drift }) => drift.some(({ accepted }) => accepted !== null),
};

/** Returns drift that no operator accepted, including drift from audit assignments. */
const openDrift = ({ drift }: OffAgent) => drift.filter(({ accepted }) => accepted === null);

/** Returns the ids of the drift records that can be accepted. */
export const acceptable = (agent: OffAgent): readonly string[] => openDrift(agent).map(({ drift_id }) => drift_id);

/**
 * Reports whether an apply can repair the agent or update its modules. An apply never repairs the drift of an audit
 * assignment.
 */
export const canRepair = (agent: OffAgent): boolean =>
  agent.failed_operation !== null ||
  agent.outdated !== undefined ||
  agent.unapplied > 0 ||
  agent.pending_removals > 0 ||
  agent.drift.some(({ assignment, accepted }) => assignment === null && accepted === null);

/** Reports whether the agent can be checked for drift, which requires a connection. */
export const canCheck = ({ connected }: OffAgent): boolean => connected;

/**
 * Returns a key that consists of the reasons and the issues without the agent's name. Agents with the same key form a
 * group.
 */
function groupKey(agent: OffAgent, name: string): string {
  const { issues, more } = issuesOf(agent);
  return JSON.stringify([findingsOf(agent), issues.map(({ text }) => text.replaceAll(name, '')), more, agent.modules]);
}

/** Findings, the most urgent first. Accepted drift, which is none, comes last. */
const findingOrder: readonly (OffFinding | undefined)[] = [...offReasons, 'outdated', undefined];

/** Sorts agents by their worst finding, and those with the same one by name. */
export const byFinding = (agents: readonly OffAgent[]): readonly OffAgent[] =>
  agents
    .map((agent) => ({ agent, order: findingOrder.indexOf(findingsOf(agent)[0]), name: agent.name ?? agent.node_id }))
    .sort((a, b) => a.order - b.order || compareNames(a.name, b.name))
    .map(({ agent }) => agent);

export interface OffGroup {
  readonly key: string;
  readonly agents: readonly OffAgent[];
}

/** Maximum number of agents to list without groups. */
const maxUngrouped = 25;

/** Groups agents with the same reasons if there are many agents. Groups are in the order of their first members. */
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
