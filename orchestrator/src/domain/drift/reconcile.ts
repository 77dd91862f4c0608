import { maxExamples, type OffAgent } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import {
  agentsOff,
  driftOfAgents,
  failedChecksOfAgents,
  outdatedOfAgents,
  unfinishedOfAgents,
} from '../../store/queries/reconcile.ts';
import { lastSeen } from '../agents/agents.ts';
import type { Context } from '../shared/context.ts';
import { assignmentOfScope } from '../shared/drift-scope.ts';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';
import { ExampleShare, examplesOf, examplesOfKeys, shortened, withoutChanges } from './drift-examples.ts';
import type { OffFilter, OffRanking } from './off-ranking.ts';
import type { Standing } from './standings.ts';

/** Lists the approved agents that are not in their desired state, worst first. */
export async function listReconcile(
  context: Context,
  request: PageRequest & OffFilter,
  ranking: OffRanking,
): Promise<Page<OffAgent>> {
  const { items, more } = await readPage(request, ({ limit, offset }) => ranking.read({ ...request, limit, offset }));
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

/**
 * Maximum number of bytes of drift states read at a time. Agents choose the names in the states, and therefore the
 * sizes.
 */
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
