import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Play, ScanSearch, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type AssignmentWithMatches, removeAssignment } from '../../api/assignments.ts';
import { runAssignment } from '../../api/runs.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { visibleText } from '../../parts/text.tsx';
import { ApplyDialog } from './apply-dialog.tsx';
import { matchText } from './matched-agents.tsx';
import { useMatchedAgents } from './use-matched-agents.ts';

export function AssignmentActions({ assignment }: { readonly assignment: AssignmentWithMatches }) {
  const { name, mode, matches } = assignment;
  const navigate = useNavigate();
  const [applying, setApplying] = useState(false);
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
      <Button look="danger" icon={<Trash2 className="size-4" />} onClick={() => setRemoving(true)}>
        Remove…
      </Button>
      <Button
        icon={<ScanSearch className="size-4" />}
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
      {applying && (
        <ApplyDialog open onOpenChange={setApplying} assignment={assignment} count={matches.length} onStarted={toRun} />
      )}
      <Confirm
        open={removing}
        onOpenChange={setRemoving}
        title={`Remove the assignment ${visibleText(name)}?`}
        action="Remove"
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
