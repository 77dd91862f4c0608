import { type OffReason, offReasons } from '@muster/protocol/http';
import {
  agentsDrifted,
  agentsNotAsApplied,
  agentsOutdated,
  agentsWithFailedApply,
  agentsWithFailedCheck,
} from '../../store/queries/reconcile.ts';
import type { Context } from '../shared/context.ts';

/** Finds the approved agents that are not in their desired state. */

export interface Standing {
  readonly node_id: string;
  readonly name: string | null;
  /** Reasons in order of urgency, worst first. */
  reasons: OffReason[];
  /** Whether the agent has drifted, including accepted drift. */
  drifted: boolean;
  unapplied: number;
  pending_removals: number;
  /** Number of applied modules that have a newer revision. */
  outdated: number;
}

/** Reports whether the agent is not in its desired state. Accepted drift and outdated modules do not count. */
export const isOff = ({ reasons }: Pick<Standing, 'reasons'>): boolean => reasons.length > 0;

interface Found {
  readonly drifted: readonly { node_id: string; name: string | null; is_accepted: number }[];
  readonly failedChecks: readonly { node_id: string; name: string | null }[];
  readonly failedApplies: readonly { node_id: string; name: string | null }[];
  readonly notApplied: readonly { node_id: string; name: string | null; state: string; count: number }[];
  readonly outdated: readonly { node_id: string; name: string | null; count: number }[];
}

/** Merges all kinds of findings by agent. */
export function standingsOf({
  drifted,
  failedChecks,
  failedApplies,
  notApplied,
  outdated,
}: Found): Map<string, Standing> {
  const standings = new Map<string, Standing & { has: Set<OffReason> }>();
  const of = ({ node_id, name }: { node_id: string; name: string | null }) => {
    const known = standings.get(node_id);
    if (known) return known;
    const fresh = {
      node_id,
      name,
      reasons: [],
      has: new Set<OffReason>(),
      drifted: false,
      unapplied: 0,
      pending_removals: 0,
      outdated: 0,
    };
    standings.set(node_id, fresh);
    return fresh;
  };
  for (const row of drifted) {
    const standing = of(row);
    standing.drifted = true;
    if (row.is_accepted === 0) standing.has.add('drifted');
  }
  for (const row of failedChecks) of(row).has.add('drift_failed');
  for (const row of failedApplies) of(row).has.add('apply_failed');
  for (const row of notApplied) {
    const standing = of(row);
    if (row.state === 'unapplied') {
      standing.unapplied = Number(row.count);
      standing.has.add('unapplied');
    } else {
      standing.pending_removals = Number(row.count);
      standing.has.add('pending_removals');
    }
  }
  for (const row of outdated) of(row).outdated = Number(row.count);
  return new Map(
    [...standings].map(([id, { has, ...standing }]) => [
      id,
      { ...standing, reasons: offReasons.filter((reason) => has.has(reason)) },
    ]),
  );
}

/** Returns a number that orders agents by their reasons. A worse reason outweighs all lesser reasons combined. */
const weightOf = ({ reasons }: Standing): number =>
  reasons.reduce((sum, reason) => sum + 2 ** (offReasons.length - offReasons.indexOf(reason)), 0);

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Sorts agents by their reasons, worst first. Then come agents with outdated modules before others, then names. */
export function byUrgency(standings: Iterable<Standing>): Standing[] {
  return [...standings]
    .map((standing) => ({ standing, weight: weightOf(standing) }))
    .sort(
      (a, b) =>
        b.weight - a.weight ||
        Number(b.standing.outdated > 0) - Number(a.standing.outdated > 0) ||
        compareText(a.standing.name ?? '', b.standing.name ?? '') ||
        compareText(a.standing.node_id, b.standing.node_id),
    )
    .map(({ standing }) => standing);
}

/** Finds all approved agents that are not in their desired state, that have accepted drift, or that are outdated. */
export async function findOff({ db }: Context): Promise<Map<string, Standing>> {
  const [drifted, failedChecks, failedApplies, notApplied, outdated] = await Promise.all([
    db.all(agentsDrifted, {}),
    db.all(agentsWithFailedCheck, {}),
    db.all(agentsWithFailedApply, {}),
    db.all(agentsNotAsApplied, {}),
    db.all(agentsOutdated, {}),
  ]);
  return standingsOf({ drifted, failedChecks, failedApplies, notApplied, outdated });
}
