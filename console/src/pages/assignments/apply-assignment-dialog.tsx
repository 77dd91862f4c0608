import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { type AssignmentWithMatches, assignmentsQuery } from '../../api/assignments.ts';
import { countedText } from '../../parts/count.ts';
import { visibleText } from '../../parts/text.tsx';
import { ApplyRunDialog } from '../apply/apply-run-dialog.tsx';
import { AssignmentLink } from '../links.tsx';
import { otherAssignments } from './other-assignments.ts';
import { useMatchedAgents } from './use-matched-agents.ts';

/** Maximum number of other assignments to name. */
const maxNames = 8;

/**
 * Plans and applies an assignment. An apply brings an agent to its whole desired state, so the dialog names the other
 * assignments that it includes, and the plan shows which modules come from them.
 */
export function ApplyAssignmentDialog({
  assignment: { name, modules, matches },
  onClose,
}: {
  readonly assignment: AssignmentWithMatches;
  readonly onClose: () => void;
}) {
  const { data: assignments } = useQuery(assignmentsQuery);
  const agents = useMatchedAgents(matches);
  const others = useMemo(
    () => (assignments === undefined || agents === undefined ? [] : otherAssignments(name, assignments, agents)),
    [name, assignments, agents],
  );
  const moduleNote = useCallback(
    (module: string) => {
      if (modules.includes(module)) return null;
      const other = others.find((each) => each.modules.includes(module));
      return other === undefined ? null : `from the assignment ${visibleText(other.name)}`;
    },
    [modules, others],
  );
  const more = others.length === 0 ? '' : ` and ${countedText(others.length, 'other assignment')}`;
  return (
    <ApplyRunDialog
      title={`Apply ${visibleText(name)}${more} to ${countedText(matches.length, 'agent')}`}
      {...(others.length > 0 && {
        description: (
          <>
            An apply brings an agent to its whole desired state. It includes the other assignments that match an agent:{' '}
            {others.slice(0, maxNames).map((other, at) => (
              <span key={other.name}>
                {at > 0 && ', '}
                <AssignmentLink name={other.name} />
                {other.window_only && ' (only in maintenance windows)'}
              </span>
            ))}
            {others.length > maxNames && `, and ${others.length - maxNames} more`}.
          </>
        ),
      })}
      moduleNote={moduleNote}
      loadSubjects={async () => [{ kind: 'assignment', name }]}
      onClose={onClose}
    />
  );
}
