import { MusterError } from '@muster/protocol';
import type { DriftAcceptance, DriftRecord } from '@muster/protocol/http';
import { toJson } from '../../store/json-text.ts';
import { setRecordAccepted } from '../../store/queries/drift.ts';
import { driftStateOfRecord, setAccepted } from '../../store/queries/drift-states.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { assignmentOfScope } from '../shared/drift-scope.ts';
import { getDrift } from './drift.ts';
import { namesOf } from './drift-effects.ts';
import { deviationOf } from './drift-findings.ts';
import { fingerprintsOf } from './drift-fingerprint.ts';

/** Accepts drift, or revokes the acceptance. drift-effects.ts determines how later checks treat accepted drift. */

/**
 * Accepts the drift in a record.
 * @throws MusterError drift_not_found, not_drifted, drift_superseded
 */
export async function acceptDrift(
  context: Context,
  actor: Actor,
  driftId: string,
  reason: string,
): Promise<DriftRecord> {
  const { record, state } = await requireNewest(context, driftId);
  if (record.status !== 'drifted') throw new MusterError('not_drifted', `the result of the check is ${record.status}`);
  if (!state) throw superseded(record);
  const { node_id, resources } = record;
  const accepted: DriftAcceptance = { by: actor.id, at: seconds(context.now()), reason };
  const label = await agentLabel(context, node_id);
  await context.db.write({
    name: 'drift/accept',
    statements: [
      statement(
        setAccepted,
        {
          node_id,
          drift_id: driftId,
          fingerprints: toJson(fingerprintsOf(resources.map(deviationOf))),
          accepted: toJson(accepted),
        },
        { expect: 'changed', else: 'drift_superseded' },
      ),
      statement(setRecordAccepted, { drift_id: driftId, accepted: toJson(accepted) }),
      audited(context, {
        type: 'drift.accepted',
        actor,
        target: { type: 'agent', id: node_id, name: label },
        summary: `drift of ${label} accepted: ${reason}`,
        metadata: { drift_id: driftId, assignment: assignmentOfScope(state.scope), reason, ...namesOf(resources) },
      }),
    ],
  });
  return { ...record, accepted };
}

/**
 * Revokes the acceptance of the drift in a record.
 * @throws MusterError drift_not_found, drift_superseded
 */
export async function unacceptDrift(context: Context, actor: Actor, driftId: string): Promise<DriftRecord> {
  const { record, state } = await requireNewest(context, driftId);
  if (!state) {
    if (record.accepted === null) return record;
    throw superseded(record);
  }
  if (state.accepted === null) return record;
  const { node_id } = record;
  const label = await agentLabel(context, node_id);
  await context.db.write({
    name: 'drift/unaccept',
    statements: [
      statement(
        setAccepted,
        { node_id, drift_id: driftId, fingerprints: null, accepted: null },
        { expect: 'changed', else: 'drift_superseded' },
      ),
      statement(setRecordAccepted, { drift_id: driftId, accepted: null }),
      audited(context, {
        type: 'drift.unaccepted',
        actor,
        target: { type: 'agent', id: node_id, name: label },
        summary: `drift of ${label} is no longer accepted`,
        metadata: { drift_id: driftId, assignment: assignmentOfScope(state.scope), because: 'operator' },
      }),
    ],
  });
  return { ...record, accepted: null };
}

/**
 * Returns the record, with the agent's drift state if there is no newer record.
 * @throws MusterError drift_not_found, drift_superseded
 */
async function requireNewest(context: Context, driftId: string) {
  const record = await getDrift(context, driftId);
  const state = await context.db.get(driftStateOfRecord, { node_id: record.node_id, drift_id: driftId });
  return { record, state };
}

const superseded = ({ drift_id }: DriftRecord) =>
  new MusterError('drift_superseded', `${drift_id} is not the newest check, or an apply has corrected its findings`);
