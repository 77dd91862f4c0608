import type { ResourceResult } from '@muster/protocol';
import type { DriftAcceptance } from '@muster/protocol/http';
import { fromJson, toJson } from '../../store/json-text.ts';
import { setRecordAccepted } from '../../store/queries/drift.ts';
import { deleteDriftState, driftState, putDriftState, stillAccepted } from '../../store/queries/drift-states.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { keyOf } from '../operations/applied-state.ts';
import { type Context, seconds } from '../shared/context.ts';
import { assignmentOfScope } from '../shared/drift-scope.ts';
import type { Deviation, Verdict } from './drift-findings.ts';
import { fingerprintsOf, otherThan } from './drift-fingerprint.ts';

/**
 * Decides when drift causes an event. A machine's state is the set of drifted fields for each resource. A newly drifted
 * field causes one event, no matter how many checks find it. A set that becomes empty also causes one event, but a set
 * that only shrinks causes none.
 */

/** Drifted fields by resource key. */
export type Drifted = Record<string, string[]>;

interface Subject {
  node_id: string;
  label: string;
  scope: string;
}

export function driftedFields(deviations: readonly Pick<Deviation, 'key' | 'fields'>[]): Drifted {
  const moved: Drifted = {};
  for (const { key, fields } of deviations) moved[key] = [...new Set([...(moved[key] ?? []), ...fields])].sort();
  return moved;
}

/** Returns the keys of resources with newly drifted fields. */
export const newlyDrifted = (before: Drifted, now: Drifted): string[] =>
  Object.entries(now)
    .filter(([key, fields]) => fields.some((field) => !before[key]?.includes(field)))
    .map(([key]) => key);

export const without = (before: Drifted, keys: ReadonlySet<string>): Drifted =>
  Object.fromEntries(Object.entries(before).filter(([key]) => !keys.has(key)));

const together = (one: Drifted, other: Drifted): Drifted => {
  const both = { ...one };
  for (const [key, fields] of Object.entries(other)) both[key] = [...new Set([...(both[key] ?? []), ...fields])].sort();
  return both;
};

type StateRow = NonNullable<Awaited<ReturnType<typeof findState>>>;
const findState = ({ db }: Context, { node_id, scope }: Subject) => db.get(driftState, { node_id, scope });

/**
 * Returns a statement that fails if an operator has concurrently accepted the drift or revoked the acceptance. The
 * caller then retries.
 */
const unlessAcceptanceChanged = ({ node_id, scope, accepted }: StateRow): Statement =>
  statement(
    stillAccepted,
    { node_id, scope, accepted: accepted ?? '' },
    {
      expect: 'row',
      else: 'operation_finished',
      detail: 'an operator changed the acceptance of the drift at the same time',
    },
  );

export interface CheckEffects {
  /** Updates the machine's state, and records an event if the state changed. */
  statements: Statement[];
  /** The acceptance if it covers all drift that the check found; otherwise, null. */
  accepted: DriftAcceptance | null;
}

export async function checkEffects(
  context: Context,
  subject: Subject,
  driftId: string,
  verdict: Verdict,
): Promise<CheckEffects> {
  const { node_id, scope } = subject;
  const row = await findState(context, subject);
  if (verdict.status === 'in_sync')
    return { statements: row ? resolved(context, subject, { drift_id: driftId }) : [], accepted: null };
  const { complete } = verdict;
  // An incomplete check counts only for the resources that it observed.
  const seen = complete
    ? verdict.deviations
    : verdict.deviations.filter(({ result }) => result.status === 'would_change');
  if (seen.length === 0) return { statements: [], accepted: null };
  const accepted = fromJson(row?.accepted ?? null);
  const known = fromJson(row?.fingerprints ?? null) ?? {};
  const prints = fingerprintsOf(seen);
  const others = accepted === null ? [] : otherThan(known, prints);
  // The check did not observe all accepted drift, so the state does not change.
  if (accepted !== null && others.length === 0 && !complete) return { statements: [], accepted };
  // Earlier releases did not record the drifted fields, so the fields that this check found may have drifted earlier.
  const before = row ? (row.drifted === null ? null : (fromJson(row.drifted) as Drifted)) : {};
  const moved = driftedFields(seen);
  const now = complete || before === null ? moved : together(before, moved);
  const still = others.length > 0 ? null : accepted;
  const statements: Statement[] = [
    ...(row ? [unlessAcceptanceChanged(row)] : []),
    statement(putDriftState, {
      node_id,
      scope,
      drifted: toJson(now),
      since: row?.since ?? seconds(context.now()),
      drift_id: driftId,
      fingerprints: toJson(complete ? prints : { ...known, ...prints }),
      accepted: still === null ? null : toJson(still),
    }),
  ];
  const newKeys = new Set([...(before === null ? [] : newlyDrifted(before, now)), ...others]);
  if (accepted !== null && still === null)
    statements.push(unaccepted(context, subject, { drift_id: driftId, because: 'another deviation' }));
  if (still === null && newKeys.size > 0) {
    const which = seen.filter(({ key }) => newKeys.has(key)).map(({ result }) => result);
    const how = accepted !== null ? 'otherwise' : row ? 'further' : 'first';
    statements.push(detected(context, subject, driftId, which, how));
  }
  return { statements, accepted: still };
}

/**
 * Updates drift after an apply, without a check. A resource is no longer drifted if the apply changed it or found it
 * as declared.
 */
export async function followApply(context: Context, subject: Subject) {
  const { node_id, scope } = subject;
  const row = await findState(context, subject);
  const before: Drifted | null = row === undefined ? {} : fromJson(row.drifted);
  const corrected = new Set<string>();
  let allWell = true;
  return {
    /** Adds one page of results. */
    take(results: readonly ResourceResult[]): void {
      for (const { type, identity, status } of results) {
        if (status !== 'unchanged' && status !== 'changed') allWell = false;
        else if (before !== null && row) {
          const key = keyOf(type, identity);
          if (Object.hasOwn(before, key)) corrected.add(key);
        }
      }
    },

    /** Returns the statements. Call it after all results are added. */
    statements(operationId: string, succeeded: boolean): Statement[] {
      if (!row) return [];
      // The drifted fields are unknown, so drift is cleared only if all resources are as declared.
      if (before === null) return allWell ? resolved(context, subject, { operation_id: operationId }) : [];
      const left = without(before, corrected);
      const count = Object.keys(left).length;
      if (count === 0) return resolved(context, subject, { operation_id: operationId });
      // A successful apply enforces the declared state and therefore revokes the acceptance of remaining drift.
      const ends = succeeded && row.accepted !== null;
      if (count === Object.keys(before).length && !ends) return succeeded ? [unlessAcceptanceChanged(row)] : [];
      const prints = fromJson(row.fingerprints) ?? {};
      const put = statement(putDriftState, {
        node_id,
        scope,
        drifted: toJson(left),
        since: row.since,
        drift_id: row.drift_id,
        fingerprints: toJson(Object.fromEntries(Object.entries(prints).filter(([key]) => key in left))),
        accepted: ends ? null : row.accepted,
      });
      if (!ends) return [unlessAcceptanceChanged(row), put];
      // This is the newest drift record, which must not be shown as accepted.
      const judgedAgain =
        row.drift_id === null ? [] : [statement(setRecordAccepted, { drift_id: row.drift_id, accepted: null })];
      const event = unaccepted(context, subject, { operation_id: operationId, because: 'apply' });
      return [unlessAcceptanceChanged(row), put, ...judgedAgain, event];
    },
  };
}

/** Maximum number of resources to list in an event. The count includes all drifted resources. */
const maxNamed = 10;
/** Maximum length of each name, in characters. A page may contain hundreds of events. */
const maxName = 512;

function detected(
  context: Context,
  { node_id, label }: Subject,
  driftId: string,
  which: readonly ResourceResult[],
  how: 'first' | 'further' | 'otherwise',
): Statement {
  const agent = { type: 'agent', id: node_id, name: label } as const;
  const count = which.length;
  const adverb = { first: '', further: ' further', otherwise: ' beyond the accepted drift' }[how];
  return audited(context, {
    type: 'drift.detected',
    actor: agent,
    target: agent,
    summary: `agent ${label} has drifted${adverb}: ${count}${how === 'further' ? ' more' : ''} ${count === 1 ? 'resource differs' : 'resources differ'}`,
    metadata: { drift_id: driftId, ...namesOf(which) },
  });
}

export const namesOf = (which: readonly ResourceResult[]) => ({
  resources: which.slice(0, maxNamed).map(({ type, identity }) => `${type} ${identity.slice(0, maxName)}`),
  count: which.length,
});

function unaccepted(
  context: Context,
  { node_id, label, scope }: Subject,
  because: ({ drift_id: string } | { operation_id: string }) & { because: 'another deviation' | 'apply' },
): Statement {
  const agent = { type: 'agent', id: node_id, name: label } as const;
  return audited(context, {
    type: 'drift.unaccepted',
    actor: agent,
    target: agent,
    summary: `drift of ${label} is no longer accepted`,
    metadata: { ...because, assignment: assignmentOfScope(scope) },
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
      summary: `agent ${label} is in sync again`,
      metadata: by,
    }),
  ];
}
