import type { DriftRecord } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Check, Play, RefreshCw } from 'lucide-react';
import { useState } from 'react';
import { agentQuery } from '../../api/agents.ts';
import { checkNow } from '../../api/drift.ts';
import { loadUnassignedModules } from '../../api/modules/unassigned-modules.ts';
import { operationQuery } from '../../api/operations.ts';
import { queryClient } from '../../api/query-client.ts';
import { Button } from '../../parts/button.tsx';
import { Problem } from '../../parts/states.tsx';
import { displayName } from '../agents/agent-state.ts';
import { ApplyAgentDialog } from '../apply/apply-agent-dialog.tsx';
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
  const { data: agent } = useQuery({ ...agentQuery(node_id), enabled: dialog === 'repair' });
  const drifted = status === 'drifted';
  return (
    <>
      <Button icon={<RefreshCw className="size-4" />} busy={check.isPending} onClick={() => check.mutate()}>
        {check.isPending ? 'Checking…' : 'Check now'}
      </Button>
      {drifted && accepted === null && (
        <Button icon={<Check className="size-4" />} onClick={() => setDialog('accept')}>
          Accept…
        </Button>
      )}
      {drifted && accepted !== null && <Button onClick={() => setDialog('withdraw')}>Withdraw acceptance</Button>}
      {drifted && trigger !== 'audit' && (
        <Button
          look="primary"
          icon={<Play aria-hidden="true" className="size-4" />}
          onClick={() => setDialog('repair')}
        >
          Apply…
        </Button>
      )}
      {check.isError && (
        <div className="basis-full">
          <Problem error={check.error} />
        </div>
      )}
      {dialog === 'accept' && <AcceptDialog driftIds={[drift_id]} onClose={() => setDialog(null)} />}
      {dialog === 'withdraw' && <WithdrawDialog driftId={drift_id} onClose={() => setDialog(null)} />}
      {dialog === 'repair' && agent !== undefined && (
        <ApplyAgentDialog
          agent={agent}
          title={`Apply to ${displayName(agent).slice(0, 64)}`}
          loadModules={async () => {
            const { modules } = await queryClient.fetchQuery(operationQuery(record.snapshot_operation_id));
            return (await loadUnassignedModules([{ node_id, modules }])).get(node_id) ?? [];
          }}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  );
}
