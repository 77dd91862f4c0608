import type { OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { OffFinding } from '../../../../client/src/reason-words.ts';
import { reconcileQuery } from '../../api/reconcile.ts';
import { Button } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';
import { canRepair } from './off.ts';
import { RepairDialog } from './repair-dialog.tsx';

/** Applies to all agents that are out of sync for one reason, without opening their list. Plans them first. */
export function RepairAllDialog({
  reason,
  count,
  onClose,
}: {
  readonly reason: OffFinding;
  /** Number of agents that the list had when the dialog opened. */
  readonly count: number;
  readonly onClose: () => void;
}) {
  const { data, error } = useQuery(reconcileQuery({ reason }));
  // The agents in the list when the dialog opened. The list changes while the apply runs.
  const [agents, setAgents] = useState<readonly OffAgent[] | null>(null);
  if (agents === null && data !== undefined) setAgents(data.filter(canRepair));
  if (agents !== null && agents.length > 0) return <RepairDialog agents={agents} onClose={onClose} />;
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      wide
      title={`Apply to ${countedText(count, 'agent')}`}
      footer={<Button onClick={onClose}>Close</Button>}
    >
      {agents !== null ? (
        <p className="text-sm">
          An apply changes none of these agents. Drift of audit assignments is only reported, and an apply does not
          change it.
        </p>
      ) : error !== null ? (
        <Problem error={error} />
      ) : (
        <Skeleton className="h-16 w-full rounded-md" />
      )}
    </Dialog>
  );
}
