import type { DriftRecord } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Check, RefreshCw, Wrench } from 'lucide-react';
import { useState } from 'react';
import { checkNow } from '../../api/drift.ts';
import { loadUnassignedModules } from '../../api/modules/unassigned-modules.ts';
import { operationQuery, startApply } from '../../api/operations.ts';
import { queryClient } from '../../api/query-client.ts';
import { Button } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Problem } from '../../parts/states.tsx';
import { AcceptDialog, WithdrawDialog } from './acceptance-dialogs.tsx';

/** Buttons that check an agent again, or accept or repair its drift. */
export function DriftActions({ record }: { readonly record: DriftRecord }) {
  const { node_id, status, accepted, drift_id, trigger } = record;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<'repair' | 'accept' | 'withdraw' | null>(null);
  const check = useMutation({
    mutationFn: () => checkNow(node_id),
    onSuccess: (found) => void navigate({ to: '/drift/$record', params: { record: found.drift_id } }),
  });
  const drifted = status === 'drifted';
  return (
    <>
      <Button icon={<RefreshCw className="size-4" />} busy={check.isPending} onClick={() => check.mutate()}>
        Check again
      </Button>
      {drifted && accepted === null && (
        <Button icon={<Check className="size-4" />} onClick={() => setDialog('accept')}>
          Accept
        </Button>
      )}
      {drifted && accepted !== null && <Button onClick={() => setDialog('withdraw')}>Withdraw acceptance</Button>}
      {drifted && trigger !== 'audit' && (
        <Button look="primary" icon={<Wrench className="size-4" />} onClick={() => setDialog('repair')}>
          Repair
        </Button>
      )}
      {check.isError && (
        <div className="basis-full">
          <Problem error={check.error} />
        </div>
      )}
      {dialog === 'accept' && (
        <AcceptDialog driftIds={[drift_id]} resources={record.resources} onClose={() => setDialog(null)} />
      )}
      {dialog === 'withdraw' && <WithdrawDialog driftId={drift_id} onClose={() => setDialog(null)} />}
      <Confirm
        open={dialog === 'repair'}
        onOpenChange={(open) => !open && setDialog(null)}
        danger={false}
        title="Repair this drift?"
        action="Apply"
        onConfirm={async () => {
          const { modules } = await queryClient.fetchQuery(operationQuery(record.snapshot_operation_id));
          const beyond = await loadUnassignedModules([{ node_id, modules }]);
          const operation = await startApply({ node_id, modules: beyond.get(node_id) ?? [] });
          void navigate({ to: '/operations/$operation', params: { operation: operation.operation_id } });
        }}
      >
        This applies the current assignments of the agent. It repairs the drift, and also applies changes made to its
        modules since the last apply.
      </Confirm>
    </>
  );
}
