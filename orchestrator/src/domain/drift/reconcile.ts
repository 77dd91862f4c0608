import { maxExamples, type OffAgent, type OffReason, offReasons } from '@muster/protocol/http';
import { isEmpty, matchesSelector } from '@muster/protocol/selector';
import { fromJson } from '../../store/json-text.ts';
import { agentsForSelectors } from '../../store/queries/agents/agents.ts';
import {
  agentsDrifted,
  agentsNotAsApplied,
  agentsOff,
  agentsOutdated,
  agentsWithFailedApply,
  agentsWithFailedCheck,
  driftOfAgents,
  failedChecksOfAgents,
  outdatedOfAgents,
  unfinishedOfAgents,
} from '../../store/queries/reconcile.ts';
import { lastSeen, requireSelector } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';
import { assignmentOfScope } from '../shared/drift-scope.ts';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';
import { ExampleShare, examplesOf, examplesOfKeys, shortened, withoutChanges } from './drift-examples.ts';

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

/** Returns the sort key of {@link byUrgency}. A worse reason outweighs all lesser reasons combined. */
const weightOf = ({ reasons }: Standing): number =>
  reasons.reduce((sum, reason) => sum + 2 ** (offReasons.length - offReasons.indexOf(reason)), 0);

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Sorts agents by their worst reason, then those with outdated modules before the others, then by name. */
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

/** Maximum number of agents matched before yielding to the event loop. */
const agentsPerTurn = 500;

export async function listReconcile(
  context: Context,
  request: PageRequest & {
    filter?: string | undefined;
    /** Node id or name. */
    agent?: string | undefined;
    reason?: OffReason | undefined;
    include_accepted?: boolean | undefined;
    include_outdated?: boolean | undefined;
  },
): Promise<Page<OffAgent>> {
  const { agent, reason, include_accepted, include_outdated } = request;
  const selector = request.filter === undefined ? null : requireSelector(request.filter, '/filter');
  const found = byUrgency((await findOff(context)).values()).filter(
    (standing) =>
      (isOff(standing) ||
        (include_accepted === true && standing.drifted) ||
        (include_outdated === true && standing.outdated > 0)) &&
      (reason === undefined || standing.reasons.includes(reason)) &&
      (agent === undefined || standing.node_id === agent || standing.name === agent),
  );
  const { items, more } = await readPage(request, async ({ limit, offset }) => {
    if (selector === null || isEmpty(selector)) return found.slice(offset, offset + limit);
    const matching: Standing[] = [];
    for (let start = 0; start < found.length && matching.length < offset + limit; start += agentsPerTurn) {
      const part = found.slice(start, start + agentsPerTurn);
      const rows = await context.db.all(agentsForSelectors, { node_ids: part.map(({ node_id }) => node_id) });
      const matches = new Set(
        rows
          .filter((row) =>
            matchesSelector(selector, { tags: fromJson(row.tags), attributes: fromJson(row.attributes) }),
          )
          .map(({ node_id }) => node_id),
      );
      matching.push(...part.filter(({ node_id }) => matches.has(node_id)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return matching.slice(offset, offset + limit);
  });
  return { items: await described(context, items), more };
}

async function described(context: Context, standings: readonly Standing[]): Promise<OffAgent[]> {
  const { db, presence } = context;
  if (standings.length === 0) return [];
  const node_ids = standings.map(({ node_id }) => node_id);
  const shares = new Map(node_ids.map((node_id) => [node_id, new ExampleShare(node_ids.length)]));
  const [rows, drifts, checks, unfinished, outdated] = await Promise.all([
    db.all(agentsOff, { node_ids }),
    driftOf(context, shares),
    db.all(failedChecksOfAgents, { node_ids }),
    db.all(unfinishedOfAgents, { node_ids, count: maxExamples }),
    db.all(outdatedOfAgents, { node_ids }),
  ]);
  const outdatedOf = Map.groupBy(outdated, (row) => row.node_id);
  const unfinishedOf = Map.groupBy(unfinished, (row) => row.node_id);
  const byNode = new Map(rows.map((row) => [row.node_id, row]));
  const checkOf = new Map(checks.map((row) => [row.node_id, row]));
  return standings.flatMap(({ node_id, reasons, unapplied, pending_removals }) => {
    const row = byNode.get(node_id);
    const share = shares.get(node_id);
    // The agent was removed concurrently.
    if (!row || !share) return [];
    const lastContact = presence.lastContactAt(node_id);
    const check = checkOf.get(node_id);
    const { operation_id, status } = row;
    return [
      {
        node_id,
        name: row.name,
        connected: lastContact !== null,
        last_seen_at: lastSeen(row, lastContact),
        reasons,
        drift: drifts.get(node_id) ?? [],
        failed_check: check ? { drift_id: check.drift_id, checked_at: check.checked_at, error: check.error } : null,
        failed_operation:
          operation_id !== null && (status === 'failed' || status === 'interrupted' || status === 'expired')
            ? {
                operation_id,
                status,
                finished_at: row.finished_at,
                error: row.error,
                summary: fromJson(row.summary),
                run_id: row.run_id,
              }
            : null,
        unapplied,
        pending_removals,
        unfinished: share.take(
          (unfinishedOf.get(node_id) ?? []).map(({ state, type, identity, reason }) => ({
            state: state === 'unapplied' ? ('unapplied' as const) : ('pending_removal' as const),
            ...{ type: shortened(type), identity: shortened(identity), reason: reason && shortened(reason) },
          })),
        ),
        modules: row.modules === null ? [] : fromJson(row.modules),
        ...outdatedField(outdatedOf.get(node_id) ?? []),
      },
    ];
  });
}

/** Returns the field that lists an agent's outdated modules; none without outdated modules. */
function outdatedField(
  rows: readonly { module: string; revision: number; newest: number }[],
): Pick<OffAgent, 'outdated'> {
  if (rows.length === 0) return {};
  const examples = rows.slice(0, maxExamples).map(({ module, revision, newest }) => ({ module, revision, newest }));
  return { outdated: { modules: rows.length, examples } };
}

/** Maximum bytes of drift states read at a time. Agents choose the names in the states, and therefore the sizes. */
const pageBytes = 1024 * 1024;

async function driftOf(
  { db }: Context,
  shares: ReadonlyMap<string, ExampleShare>,
): Promise<Map<string, OffAgent['drift']>> {
  const node_ids = [...shares.keys()];
  const found = new Map<string, OffAgent['drift']>();
  let after = { after_node: '', after_scope: '' };
  for (;;) {
    const rows = await db.all(driftOfAgents, { node_ids, ...after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) return found;
    for (const { node_id, scope, since, drift_id, checked_at, summary, drifted, accepted, record_resources } of rows) {
      // Earlier releases did not store the id of the drift record.
      if (drift_id === null || checked_at === null || summary === null) continue;
      const counts = fromJson(summary);
      const fields = drifted === null ? null : fromJson(drifted);
      const states = found.get(node_id) ?? [];
      found.set(node_id, states);
      const examples =
        record_resources === null ? examplesOfKeys(fields ?? {}) : examplesOf(fromJson(record_resources), fields);
      states.push({
        ...{ drift_id, assignment: assignmentOfScope(scope), since, checked_at, summary: counts },
        resources: fields === null ? counts.changed + counts.removed : Object.keys(fields).length,
        examples: shares.get(node_id)?.take(examples, withoutChanges) ?? [],
        accepted: fromJson(accepted),
      });
    }
    after = { after_node: last.node_id, after_scope: last.scope };
    await new Promise((resolve) => setImmediate(resolve));
  }
}
