import type { Assignment } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { assignmentsQuery } from '../../api/assignments.ts';

const none: readonly Assignment[] = [];

/** Returns the assignments that use a module, or an empty list while loading. */
export function useAssignmentsOf(module: string): readonly Assignment[] {
  const { data } = useQuery(assignmentsQuery);
  return useMemo(() => data?.filter(({ modules }) => modules.includes(module)) ?? none, [data, module]);
}
