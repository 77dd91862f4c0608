import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Play } from 'lucide-react';
import { useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { assignmentsQuery } from '../../api/assignments.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { visibleText } from '../../parts/text.tsx';
import { ApplyRunDialog } from '../apply/apply-run-dialog.tsx';
import type { Stored } from './draft.ts';
import { agentsOf, enforcing, otherModules, rolloutOf } from './rollout.ts';
import { useAssignmentsOf } from './use-assignments-of.ts';

/** The next step for a saved module: applies its assignments, or assigns it if nothing uses it. */
export function ModuleRollout({ module: { name, required_by } }: { readonly module: Stored }) {
  const { data: all } = useQuery(assignmentsQuery);
  const { data: agents } = useQuery(agentsQuery);
  const users = useAssignmentsOf(name);
  const [isApplying, setApplying] = useState(false);
  if (all === undefined || agents === undefined) return null;
  if (users.length === 0 && required_by.length === 0) return <AssignLink module={name} look="primary" />;
  const assignments = enforcing(users, name);
  const targets = agentsOf(assignments, agents);
  if (targets.length === 0) return null;
  const others = otherModules(name, targets, all).length;
  const more = others === 0 ? '' : ` and ${countedText(others, 'other assigned module')}`;
  const title = `Apply ${visibleText(name)}${more} to ${countedText(targets.length, 'agent')}`;
  const names = assignments.map((assignment) => visibleText(assignment.name)).join(', ');
  return (
    <>
      <Button
        look="primary"
        icon={<Play aria-hidden="true" className="size-4" />}
        title={title}
        onClick={() => setApplying(true)}
      >
        Apply…
      </Button>
      {isApplying && (
        <ApplyRunDialog
          title={title}
          description={`Applies to the agents that ${names} ${assignments.length === 1 ? 'matches' : 'match'}. An apply brings an agent to its whole desired state, with the modules that its modules require.`}
          moduleNote={(module) => (module === name ? null : 'also applied')}
          loadSubjects={async () => [rolloutOf(assignments, agents)]}
          onClose={() => setApplying(false)}
        />
      )}
    </>
  );
}

/** Opens the form of a new assignment with the module in it. */
export const AssignLink = ({ module, look }: { readonly module: string; readonly look: 'plain' | 'primary' }) => (
  <Link to="/assignments/new" search={{ module } as never} className={buttonClasses(look)}>
    Assign…
  </Link>
);
