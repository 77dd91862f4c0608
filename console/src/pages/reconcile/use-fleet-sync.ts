import type { OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { neverAppliedQuery } from '../../api/agents.ts';
import { allReconcileQuery } from '../../api/reconcile.ts';
import type { FleetSync } from './agent-sync.ts';

const byId = (off: OffAgent[]): ReadonlyMap<string, OffAgent> => new Map(off.map((each) => [each.node_id, each]));
const setOf = (ids: string[]): ReadonlySet<string> => new Set(ids);

/** Returns the data that determines the sync states of all agents; null while it is loading. */
export function useFleetSync(): FleetSync | null {
  const { data: off } = useQuery({ ...allReconcileQuery, select: byId });
  const { data: neverApplied } = useQuery({ ...neverAppliedQuery, select: setOf });
  return useMemo(
    () => (off === undefined || neverApplied === undefined ? null : { off, neverApplied }),
    [off, neverApplied],
  );
}
