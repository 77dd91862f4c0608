import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';
import { ApproveDialog } from '../agents/approve-dialog.tsx';

/** Offers to approve or reject each pending agent, without opening their list. */
export function ApprovePending({ onClose }: { readonly onClose: () => void }) {
  const { data: all, error } = useQuery(agentsQuery);
  // The agents when the dialog opened. The list changes while they are approved.
  const [pending, setPending] = useState<readonly Agent[] | null>(null);
  if (pending === null && all !== undefined) setPending(all.filter(({ status }) => status === 'pending'));
  if (all !== undefined && pending !== null && pending.length > 0)
    return <ApproveDialog agents={pending} all={all} areSelected={false} onClose={onClose} />;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Approve agents"
      footer={<Button onClick={onClose}>Close</Button>}
    >
      {pending !== null ? (
        <p className="text-sm">No agent is pending approval.</p>
      ) : error !== null ? (
        <Problem error={error} />
      ) : (
        <Skeleton className="h-16 w-full rounded-md" />
      )}
    </Dialog>
  );
}
