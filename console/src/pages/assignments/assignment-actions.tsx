import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Ellipsis, ListChecks, Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type AssignmentWithMatches, removeAssignment } from '../../api/assignments.ts';
import { runAssignment } from '../../api/runs.ts';
import { Button, IconButton } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Menu, MenuItem } from '../../parts/dialog/menu.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { visibleText } from '../../parts/text.tsx';
import { useOpensApply } from '../apply/opens-apply.ts';
import { ApplyAssignmentDialog } from './apply-assignment-dialog.tsx';
import { matchText } from './matched-agents.tsx';
import { useMatchedAgents } from './use-matched-agents.ts';

export function AssignmentActions({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { name, mode, matches } = assignment;
  const navigate = useNavigate();
  const [applying, setApplying] = useState(false);
  const asked = useOpensApply();
  const [answered, setAnswered] = useState<number | null>(null);
  if (asked !== answered) {
    setAnswered(asked);
    if (asked !== null && mode === 'enforce' && matches.length > 0) setApplying(true);
  }
  const [removing, setRemoving] = useState(false);
  const matched = useMatchedAgents(matches);
  const toRun = (run: string) => void navigate({ to: '/runs/$run', params: { run } });
  const plan = useMutation({
    mutationFn: () => runAssignment(name, 'plan'),
    onSuccess: ({ run_id }) => toRun(run_id),
    onError: notifyError,
  });
  return (
    <>
      <Button
        icon={<ListChecks className="size-4" />}
        busy={plan.isPending}
        disabled={matches.length === 0}
        onClick={() => plan.mutate()}
      >
        Plan
      </Button>
      {mode === 'enforce' && (
        <Button
          look="primary"
          icon={<Play className="size-4" />}
          disabled={matches.length === 0}
          onClick={() => setApplying(true)}
        >
          Apply…
        </Button>
      )}
      <Menu
        trigger={<IconButton look="plain" label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}
      >
        <MenuItem danger icon={<Trash2 aria-hidden="true" className="size-4" />} onSelect={() => setRemoving(true)}>
          Remove…
        </MenuItem>
      </Menu>
      {applying && <ApplyAssignmentDialog assignment={assignment} onClose={() => setApplying(false)} />}
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove the assignment ${visibleText(name)}?`}
        action="Remove assignment"
        onConfirm={async () => {
          await removeAssignment(name);
          void navigate({ to: '/assignments' });
        }}
      >
        It matches {matchText(matched ?? [])}. Applied resources stay there until the next apply, which removes those
        that no assignment declares.
      </Confirm>
    </>
  );
}
