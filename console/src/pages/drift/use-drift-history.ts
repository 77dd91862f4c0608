import type { DriftRecord } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { agentDriftQuery } from '../../api/drift.ts';
import { driftedSince } from './drifted-since.ts';

/**
 * Compares a check with its agent's other checks. Returns the newest check if it is newer than this one, and the time
 * at which the drift started.
 */
export function useDriftHistory(record: DriftRecord) {
  const { data: others } = useQuery(agentDriftQuery(record.node_id));
  const isAudit = record.trigger === 'audit';
  // Audit assignments have separate checks.
  const alike = others?.filter(({ trigger }) => (trigger === 'audit') === isAudit);
  const newest = isAudit ? undefined : alike?.[0];
  const isNewer = newest !== undefined && newest.drift_id !== record.drift_id && newest.checked_at >= record.checked_at;
  return {
    newer: isNewer ? newest : null,
    /** Null while loading. */
    since: alike === undefined ? null : driftedSince(record, alike),
  };
}
