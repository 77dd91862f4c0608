import type { Assignment } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { assignmentsQuery, modulesOf } from '../../api/assignments.ts';

const none: readonly Assignment[] = [];

/** Returns the assignments that assign a module or set values for it, or an empty list while loading. */
export function useAssignmentsOf(module: string): readonly Assignment[] {
  const { data } = useQuery(assignmentsQuery);
  return useMemo(() => data?.filter((assignment) => modulesOf(assignment).includes(module)) ?? none, [data, module]);
}
