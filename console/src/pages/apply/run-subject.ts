import type { Run } from '@muster/protocol/http';
import { type FanOutOptions, runAssignment, runOnAgents } from '../../api/runs.ts';

/** The subject of a run: an assignment, or the assignments of named agents and additional modules. */
export type RunSubject =
  | { readonly kind: 'assignment'; readonly name: string }
  | { readonly kind: 'agents'; readonly node_ids: readonly string[]; readonly modules: readonly string[] };

export const startRunOf = (
  subject: RunSubject,
  kind: 'apply' | 'plan',
  options: FanOutOptions & { readonly plan_run_id?: string } = {},
): Promise<Run> =>
  subject.kind === 'assignment'
    ? runAssignment(subject.name, kind, options)
    : runOnAgents({ ...options, kind, node_ids: subject.node_ids, modules: subject.modules });

/** Returns the subject limited to some agents; null if none is left. An assignment applies to all of its agents. */
export function limitedTo(subject: RunSubject, includes: (node_id: string) => boolean): RunSubject | null {
  if (subject.kind === 'assignment') return subject;
  const left = subject.node_ids.filter(includes);
  return left.length === 0 ? null : { ...subject, node_ids: left };
}
