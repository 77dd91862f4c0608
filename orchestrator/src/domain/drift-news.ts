import type { ResourceResult } from '@muster/protocol';
import type { DriftRecord } from '@muster/protocol/http';
import { deleteDriftState, driftState, putDriftState } from '../store/drift-states.ts';
import { fromJson, toJson } from '../store/json-text.ts';
import { type Statement, statement } from '../store/unit.ts';
import { audited } from './audit.ts';
import { keyOf } from './believed-state.ts';
import { type Context, seconds } from './context.ts';

/**
 * When drift is news. A machine's state is the set of fields that moved, by resource: what was not in it before is an
 * event, once, however many checks find it again, and so is the end of it. That some of it was put right, or moved
 * further, is none.
 */

/** Fields that moved, by the key of their resource. */
export type Drifted = Record<string, string[]>;

/** From what was applied; an audit is held against what its assignment declares: neither is news of the other. */
export const appliedScope = '';
export const auditScope = (assignment: string): string => `audit:${assignment}`;

type Verdict = { status: DriftRecord['status']; drifted: readonly ResourceResult[]; whole: boolean };

interface Subject {
  node_id: string;
  label: string;
  scope: string;
}

/** What moved, of results that say so. One that names no field, such as a script that would run, stands for itself. */
export function movedIn(results: readonly ResourceResult[]): Drifted {
  const moved: Drifted = {};
  for (const { type, identity, changes, action, status } of results) {
    const fields = changes.length > 0 ? changes.map(({ field }) => field) : [status === 'failed' ? 'failed' : action];
    const key = keyOf(type, identity);
    moved[key] = [...new Set([...(moved[key] ?? []), ...fields])].sort();
  }
  return moved;
}

/** The keys of resources with fields that had not moved before. */
export const newIn = (before: Drifted, now: Drifted): string[] =>
  Object.entries(now)
    .filter(([key, fields]) => fields.some((field) => !before[key]?.includes(field)))
    .map(([key]) => key);

/** Those of `before` whose resources are not among these. */
export const without = (before: Drifted, keys: ReadonlySet<string>): Drifted =>
  Object.fromEntries(Object.entries(before).filter(([key]) => !keys.has(key)));

const together = (one: Drifted, other: Drifted): Drifted => {
  const both = { ...one };
  for (const [key, fields] of Object.entries(other)) both[key] = [...new Set([...(both[key] ?? []), ...fields])].sort();
  return both;
};

/** What a finished check comes to: the machine's state, and an event when that is news. */
export async function checkNews(
  context: Context,
  subject: Subject,
  driftId: string,
  verdict: Verdict,
): Promise<Statement[]> {
  const { node_id, scope } = subject;
  const row = await context.db.get(driftState, { node_id, scope });
  if (verdict.status === 'in_sync') return row ? resolved(context, subject, { drift_id: driftId }) : [];
  const { whole } = verdict;
  // One that did not look at everything knows of what it saw, and says nothing of the rest.
  const seen = whole ? verdict.drifted : verdict.drifted.filter(({ status }) => status === 'would_change');
  if (seen.length === 0) return [];
  // An earlier release kept no account of what had moved: it may be what is seen now.
  const before = row ? (row.drifted === null ? null : (fromJson(row.drifted) as Drifted)) : {};
  const moved = movedIn(seen);
  const now = whole || before === null ? moved : together(before, moved);
  const news = before === null ? [] : newIn(before, now);
  const statements: Statement[] = [];
  if (row?.drifted !== toJson(now)) {
    const since = row?.since ?? seconds(context.now());
    statements.push(statement(putDriftState, { node_id, scope, drifted: toJson(now), since }));
  }
  if (news.length > 0) {
    const fresh = new Set(news);
    const which = seen.filter(({ type, identity }) => fresh.has(keyOf(type, identity)));
    statements.push(detected(context, subject, driftId, which, row !== undefined));
  }
  return statements;
}

/** What an apply puts right without a check: what it brought about, or found as declared, has not drifted any more. */
export async function applyNews(
  context: Context,
  subject: Subject,
  operationId: string,
  results: readonly ResourceResult[],
): Promise<Statement[]> {
  const { node_id, scope } = subject;
  const row = await context.db.get(driftState, { node_id, scope });
  if (!row) return [];
  const well = results.filter(({ status }) => status === 'unchanged' || status === 'changed');
  // What had moved is not known: it takes all of it to be well.
  if (row.drifted === null)
    return well.length === results.length ? resolved(context, subject, { operation_id: operationId }) : [];
  const before = fromJson(row.drifted) as Drifted;
  const left = without(before, new Set(well.map(({ type, identity }) => keyOf(type, identity))));
  const count = Object.keys(left).length;
  if (count === 0) return resolved(context, subject, { operation_id: operationId });
  if (count === Object.keys(before).length) return [];
  return [statement(putDriftState, { node_id, scope, drifted: toJson(left), since: row.since })];
}

/** Named in an event; of more than so many, their number has to do. */
const mostNamed = 10;

function detected(
  context: Context,
  { node_id, label }: Subject,
  driftId: string,
  which: readonly ResourceResult[],
  already: boolean,
): Statement {
  const agent = { type: 'agent', id: node_id, name: label } as const;
  const count = which.length;
  return audited(context, {
    type: 'drift.detected',
    actor: agent,
    target: agent,
    summary: `${label} has drifted${already ? ' further' : ''}: ${count} ${already ? 'more ' : ''}of its resources moved`,
    metadata: {
      drift_id: driftId,
      resources: which.slice(0, mostNamed).map(({ type, identity }) => `${type} ${identity}`),
      count,
    },
  });
}

function resolved(
  context: Context,
  { node_id, label, scope }: Subject,
  by: { drift_id: string } | { operation_id: string },
): Statement[] {
  const agent = { type: 'agent', id: node_id, name: label } as const;
  return [
    statement(deleteDriftState, { node_id, scope }),
    audited(context, {
      type: 'drift.resolved',
      actor: agent,
      target: agent,
      summary: `${label} is in sync again`,
      metadata: by,
    }),
  ];
}
