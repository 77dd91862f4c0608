import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { startApply } from '../../api/operations.ts';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { readWait, waitFault } from '../../parts/form/fan-out.ts';
import { Checkbox, Input } from '../../parts/form/field.tsx';

/** Queues an apply for an agent that is offline. The apply cannot be planned before the agent connects. */
export function QueueApplyDialog({
  agent: { node_id },
  title,
  loadModules,
  onClose,
}: {
  readonly agent: { readonly node_id: string };
  readonly title: string;
  /** Returns the modules to apply in addition to those from assignments. */
  readonly loadModules: () => Promise<readonly string[]>;
  readonly onClose: () => void;
}) {
  const navigate = useNavigate();
  const [wait, setWait] = useState('24h');
  const [isConfirmed, setConfirmed] = useState(false);
  const ttl = readWait(wait);
  const apply = useMutation({
    mutationFn: async () =>
      startApply({ node_id, modules: await loadModules(), queue: true, ...(ttl === null ? {} : { ttl }) }),
    onSuccess: ({ operation_id }) => {
      onClose();
      void navigate({ to: '/operations/$operation', params: { operation: operation_id } });
    },
  });
  return (
    <FormDialog
      title={title}
      description="The agent is offline, so its changes cannot be planned now."
      action="Queue apply"
      request={apply}
      invalid={!isConfirmed || ttl === null}
      onSubmit={() => apply.mutate()}
      onClose={onClose}
    >
      <p className="text-sm">
        You can wait until it reconnects and plan then, or queue an apply. A queued apply starts when the agent
        reconnects, and applies its desired state at that time.
      </p>
      <Input
        label="Wait up to"
        hint="for example 30m, 24h, 7d"
        value={wait}
        error={ttl === null ? waitFault : null}
        onChange={(event) => setWait(event.target.value)}
      />
      <Checkbox
        label="Apply without a plan"
        hint="The changes are unknown. They may include removals."
        checked={isConfirmed}
        onChange={(event) => setConfirmed(event.target.checked)}
      />
    </FormDialog>
  );
}
