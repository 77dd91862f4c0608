import type { OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Check, ShieldCheck, Wrench } from 'lucide-react';
import { useState } from 'react';
import { reconcileQuery } from '../../api/reconcile.ts';
import { Button } from '../../parts/button.tsx';
import { Checkbox } from '../../parts/form/field.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { AcceptDialog, WithdrawDialog } from '../drift/acceptance-dialogs.tsx';
import { acceptable, canRepair } from './off.ts';
import { OffList } from './off-list.tsx';
import type { ReconcileDialog } from './reconcile-dialog.ts';
import { ReconcileFilters, useReconcileFilters } from './reconcile-filters.tsx';
import { RepairDialog } from './repair-dialog.tsx';

const noAgents: readonly OffAgent[] = [];

export function ReconcilePage() {
  const { reason, filter, accepted } = useReconcileFilters();
  const query = useQuery(reconcileQuery({ reason, filter: filter.trim(), accepted: accepted === 'yes' }));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<ReconcileDialog | null>(null);
  const agents = query.data ?? noAgents;
  const picked = agents.filter(({ node_id }) => chosen.has(node_id));
  const choose = (members: readonly OffAgent[], isChosen: boolean) => {
    const next = new Set(chosen);
    for (const { node_id } of members) {
      if (isChosen) next.add(node_id);
      else next.delete(node_id);
    }
    setChosen(next);
  };
  return (
    <Page
      title="Reconcile"
      subtitle="Agents that are out of sync, most urgent first."
      actions={
        picked.length > 0 && (
          <>
            <span className="text-muted text-sm">{picked.length} selected</span>
            <Button
              icon={<Check className="size-4" />}
              disabled={picked.every((agent) => acceptable(agent).length === 0)}
              onClick={() => setDialog({ kind: 'accept', driftIds: picked.flatMap(acceptable) })}
            >
              Accept
            </Button>
            <Button
              look="primary"
              icon={<Wrench className="size-4" />}
              disabled={!picked.some(canRepair)}
              onClick={() => setDialog({ kind: 'repair', agents: picked.filter(canRepair) })}
            >
              Repair
            </Button>
          </>
        )
      }
    >
      <ReconcileFilters>
        {agents.length > 1 && (
          <div className="sm:ml-auto">
            <Checkbox
              label={`Select all ${agents.length}`}
              checked={picked.length === agents.length}
              onChange={(event) => choose(agents, event.target.checked)}
            />
          </div>
        )}
      </ReconcileFilters>
      {query.isPending ? (
        <div className="rounded-lg border bg-surface">
          <SkeletonRows />
        </div>
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : agents.length === 0 ? (
        <NothingOff isFiltered={reason !== '' || filter !== '' || accepted !== ''} />
      ) : (
        <OffList agents={agents} chosen={chosen} onChoose={choose} onDialog={setDialog} />
      )}
      {dialog?.kind === 'repair' && <RepairDialog agents={dialog.agents} onClose={() => setDialog(null)} />}
      {dialog?.kind === 'accept' && (
        <AcceptDialog
          driftIds={dialog.driftIds}
          onClose={() => {
            setDialog(null);
            setChosen(new Set());
          }}
        />
      )}
      {dialog?.kind === 'withdraw' && <WithdrawDialog driftId={dialog.driftId} onClose={() => setDialog(null)} />}
    </Page>
  );
}

function NothingOff({ isFiltered }: { readonly isFiltered: boolean }) {
  const navigate = useNavigate();
  const showAll = () => void navigate({ to: '/reconcile', search: {} as never });
  return (
    <div className="rounded-lg border bg-surface">
      {isFiltered ? (
        <Empty title="No matching agents" action={<Button onClick={showAll}>Show all</Button>} />
      ) : (
        <Empty title="Everything is in sync" icon={<ShieldCheck className="size-9 text-good" strokeWidth={1.4} />}>
          No machine has drifted, and nothing remains to be applied. New drift appears here automatically.
        </Empty>
      )}
    </div>
  );
}
