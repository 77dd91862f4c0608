import { type OffAgent, offReasons } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Check, RefreshCw, ShieldCheck, Wrench } from 'lucide-react';
import { useMemo, useState } from 'react';
import { type OffFinding, reasonWords } from '../../../../client/src/reason-words.ts';
import { reconcileQuery } from '../../api/reconcile.ts';
import { Button } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { FilterFields, useClearFilters, useFilterValues } from '../../parts/table/filters.tsx';
import { AcceptDialog, WithdrawDialog } from '../drift/acceptance-dialogs.tsx';
import { CheckDialog } from '../drift/check-dialog.tsx';
import { acceptable, canRepair } from './off.ts';
import type { OffDialog } from './off-dialog.ts';
import { OffList } from './off-list.tsx';
import { RepairDialog } from './repair-dialog.tsx';

const noAgents: readonly OffAgent[] = [];
const selector = { name: 'filter', label: 'Selector', placeholder: 'Selector: role=web env=production' } as const;
const reason = {
  ...{ name: 'reason', label: 'Reason', any: 'Any reason' },
  options: [...offReasons, 'outdated' as const].map((each) => ({ value: each, label: reasonWords[each] })),
} as const;
const filtersOf = { action: [selector, reason], accepted: [selector] } as const;

/** Lists out-of-sync agents, with buttons that fix or accept several of them. */
export function OffTab({ shows }: { readonly shows: 'action' | 'accepted' }) {
  const filters: readonly (typeof selector | typeof reason)[] = filtersOf[shows];
  const values: { readonly filter?: string; readonly reason?: string } = useFilterValues(filters);
  const clear = useClearFilters(filters);
  const query = useQuery(
    reconcileQuery({
      filter: values.filter ?? '',
      reason: (values.reason ?? '') as OffFinding | '',
      accepted: shows === 'accepted',
    }),
  );
  const agents = useMemo(
    () =>
      shows === 'action'
        ? (query.data ?? noAgents)
        : (query.data ?? noAgents).filter(({ drift }) => drift.some(({ accepted }) => accepted !== null)),
    [query.data, shows],
  );
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<OffDialog | null>(null);
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
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <FilterFields filters={filters} instant={false} />
        {clear !== undefined && (
          <Button look="quiet" onClick={clear}>
            Clear filters
          </Button>
        )}
        {picked.length > 0 ? (
          <PickedActions picked={picked} onDialog={setDialog} />
        ) : (
          agents.some(canCheck) && (
            <span className="ml-auto">
              <CheckButton agents={agents} onDialog={setDialog} />
            </span>
          )
        )}
      </div>
      <div className="overflow-hidden rounded-lg border bg-surface">
        {query.isPending ? (
          <SkeletonRows />
        ) : query.isError ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : agents.length > 0 ? (
          <OffList {...{ agents, chosen }} onChoose={choose} onDialog={setDialog} />
        ) : clear !== undefined ? (
          <Empty title="No matching agents" action={<Button onClick={clear}>Clear filters</Button>} />
        ) : shows === 'accepted' ? (
          <Empty title="No accepted drift">Drift that you accept with a reason is listed here.</Empty>
        ) : (
          <Empty title="Everything is in sync" icon={<ShieldCheck className="size-9 text-good" strokeWidth={1.4} />}>
            No machine has drifted, and each has the newest revision of its modules. This list updates live.
          </Empty>
        )}
      </div>
      {dialog?.kind === 'check' && <CheckOff agents={dialog.agents} onClose={() => setDialog(null)} />}
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
    </div>
  );
}

/** A check needs a connection. */
const canCheck = ({ connected }: OffAgent): boolean => connected;

function CheckButton({
  agents,
  onDialog,
}: {
  readonly agents: readonly OffAgent[];
  readonly onDialog: (dialog: OffDialog) => void;
}) {
  return (
    <Button
      icon={<RefreshCw aria-hidden="true" className="size-4" />}
      disabled={!agents.some(canCheck)}
      onClick={() => onDialog({ kind: 'check', agents })}
    >
      Check now…
    </Button>
  );
}

function CheckOff({ agents, onClose }: { readonly agents: readonly OffAgent[]; readonly onClose: () => void }) {
  const items = agents.filter(canCheck).map(({ node_id, name }) => ({ id: node_id, name: name ?? node_id }));
  const offline = agents.length - items.length;
  const note =
    offline === 0 ? '' : `Skips ${countedText(offline, 'agent')} that ${offline === 1 ? 'is' : 'are'} offline.`;
  return <CheckDialog agents={items} note={note} onClose={onClose} />;
}

function PickedActions({
  picked,
  onDialog,
}: {
  readonly picked: readonly OffAgent[];
  readonly onDialog: (dialog: OffDialog) => void;
}) {
  return (
    <div className="ml-auto flex flex-wrap items-center gap-2">
      <span role="status" className="text-muted text-sm">
        {picked.length} selected
      </span>
      <CheckButton agents={picked} onDialog={onDialog} />
      <Button
        icon={<Check className="size-4" />}
        disabled={picked.every((agent) => acceptable(agent).length === 0)}
        onClick={() => onDialog({ kind: 'accept', driftIds: picked.flatMap(acceptable) })}
      >
        Accept…
      </Button>
      <Button
        look="primary"
        icon={<Wrench className="size-4" />}
        disabled={!picked.some(canRepair)}
        onClick={() => onDialog({ kind: 'repair', agents: picked.filter(canRepair) })}
      >
        Fix…
      </Button>
    </div>
  );
}
