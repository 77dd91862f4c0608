import { type OffAgent, type OffReason, offReasons } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Check, Play, RefreshCw, ShieldCheck } from 'lucide-react';
import { useMemo, useState } from 'react';
import { reasonWords } from '../../../../client/src/reason-words.ts';
import { reconcileQuery } from '../../api/reconcile.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { linkClasses } from '../../parts/class-names.ts';
import { countedText, countText } from '../../parts/count.ts';
import { MoreActions } from '../../parts/dialog/more-actions.tsx';
import { Empty } from '../../parts/states.tsx';
import { type Filter, useFilterValues } from '../../parts/table/filters.tsx';
import { ListTable } from '../../parts/table/list-table.tsx';
import { useOpenRows } from '../../parts/table/row-toggle.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { AcceptDialog, WithdrawDialog } from '../drift/acceptance-dialogs.tsx';
import { CheckDialog } from '../drift/check-dialog.tsx';
import { acceptable, byFinding, canCheck, canRepair, groupOff, isIn, type OffList } from './off.ts';
import { labelOf, type OffEntry, offColumns } from './off-columns.tsx';
import type { OffDialog } from './off-dialog.ts';
import { OffEntryDetails } from './off-entry-details.tsx';
import { RepairDialog } from './repair-dialog.tsx';
import { syncTones } from './sync-tones.ts';
import { useFleetSync } from './use-fleet-sync.ts';

const noAgents: readonly OffAgent[] = [];
const selector = { name: 'filter', label: 'Selector', placeholder: 'Filter: role=web' } as const;
/** The field of a phone is too narrow for the example. */
const phoneSelector = { ...selector, placeholder: 'Filter' } as const;
const reason = {
  ...{ name: 'reason', label: 'Reason', any: 'Any reason' },
  options: offReasons.map((each) => ({ value: each, label: reasonWords[each] })),
} as const;
const wideFilters = { off: [selector, reason], outdated: [selector], accepted: [selector] } as const;
const phoneFilters = { off: [phoneSelector, reason], outdated: [phoneSelector], accepted: [phoneSelector] } as const;

/** Lists out-of-sync agents, with buttons that apply to several of them or accept their drift. Groups them if there are many. */
export function OffTab({ shows }: { readonly shows: OffList }) {
  const isPhone = useIsPhone();
  const filters: readonly Filter[] = (isPhone ? phoneFilters : wideFilters)[shows];
  const values: { readonly filter?: string; readonly reason?: string } = useFilterValues(filters);
  const query = useQuery(
    reconcileQuery({
      filter: values.filter ?? '',
      reason: (values.reason ?? '') as OffReason | '',
      accepted: shows === 'accepted',
    }),
  );
  const agents = useMemo(() => (query.data ?? noAgents).filter(isIn[shows]), [query.data, shows]);
  const entries = useMemo(
    () => groupOff(byFinding(agents)).map((group, rank): OffEntry => ({ ...group, rank })),
    [agents],
  );
  /** Node IDs, so that the selection survives when the groups change. */
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<OffDialog | null>(null);
  const { open, toggle } = useOpenRows();
  const columns = useMemo(
    () => offColumns({ open, onToggle: toggle, isPhone, onDialog: setDialog }),
    [open, toggle, isPhone],
  );
  const neverApplied = useNeverApplied();
  const picked = agents.filter(({ node_id }) => chosen.has(node_id));
  const isChosen = ({ agents: members }: OffEntry) => members.every(({ node_id }) => chosen.has(node_id));
  return (
    <div className="flex h-full min-h-0 flex-col gap-3">
      {shows === 'off' && neverApplied !== null && neverApplied > 0 && <NeverApplied count={neverApplied} />}
      <ListTable
        fill
        label={shows === 'outdated' ? 'Outdated' : 'Out of sync'}
        query={query}
        rows={query.data && entries}
        filters={filters}
        toolbar={
          picked.length > 0 ? (
            <PickedActions picked={picked} onDialog={setDialog} />
          ) : (
            agents.some(canCheck) && (
              <MoreActions
                actions={[
                  {
                    ...{ label: 'Check now…', icon: <RefreshCw aria-hidden="true" className="size-4" /> },
                    onSelect: () => setDialog({ kind: 'check', agents }),
                  },
                ]}
              />
            )
          )
        }
        sortedBy="reason"
        columns={columns}
        rowKey={({ key }) => key}
        rowLabel={labelOf}
        onOpen={({ key }) => toggle(key)}
        details={(entry) =>
          open.has(entry.key) ? (
            <OffEntryDetails group={entry} onWithdraw={(driftId) => setDialog({ kind: 'withdraw', driftId })} />
          ) : null
        }
        chosen={new Set(entries.filter(isChosen).map(({ key }) => key))}
        onChoose={(keys) =>
          setChosen(
            new Set(
              entries.filter(({ key }) => keys.has(key)).flatMap((entry) => entry.agents.map((each) => each.node_id)),
            ),
          )
        }
        noMatch="No matching agents"
        empty={<NoAgents shows={shows} isInSync={neverApplied === 0 && query.data?.some(isIn.outdated) === false} />}
      />
      {dialog !== null && (
        <OpenDialog
          dialog={dialog}
          onClose={() => {
            setDialog(null);
            if (dialog.kind === 'accept') setChosen(new Set());
          }}
        />
      )}
    </div>
  );
}

function NoAgents({
  shows,
  isInSync,
}: {
  readonly shows: OffList;
  /** Whether no agent is outdated, or was never applied. */
  readonly isInSync: boolean;
}) {
  if (shows === 'accepted')
    return <Empty title="No accepted drift">Drift that you accept with a reason is listed here.</Empty>;
  if (shows === 'outdated')
    return <Empty title="No outdated agents">Each agent has the newest revision of its modules.</Empty>;
  return (
    <Empty
      title={isInSync ? 'Everything is in sync' : 'Nothing is out of sync'}
      icon={<ShieldCheck className="size-7 text-good" strokeWidth={1.4} />}
    >
      No machine has drifted, and no apply has failed. This list updates live.
    </Empty>
  );
}

function OpenDialog({ dialog, onClose }: { readonly dialog: OffDialog; readonly onClose: () => void }) {
  switch (dialog.kind) {
    case 'check':
      return <CheckOff agents={dialog.agents} onClose={onClose} />;
    case 'repair':
      return <RepairDialog agents={dialog.agents} onClose={onClose} />;
    case 'accept':
      return <AcceptDialog driftIds={dialog.driftIds} onClose={onClose} />;
    case 'withdraw':
      return <WithdrawDialog driftId={dialog.driftId} onClose={onClose} />;
  }
}

/**
 * Returns the number of agents that were never applied and are not in the list; null while it is loading. A failed first
 * apply puts an agent into the list.
 */
function useNeverApplied(): number | null {
  const sync = useFleetSync();
  return sync && [...sync.neverApplied].filter((node_id) => !sync.off.has(node_id)).length;
}

/** Links to the agents that are neither in sync nor out of sync, because no apply has succeeded on them. */
const NeverApplied = ({ count }: { readonly count: number }) => (
  <p className="text-sm">
    <Dot tone={syncTones.never_applied}>
      <Link to="/agents" search={{ status: 'never_applied' } as never} className={linkClasses}>
        {countedText(count, 'agent was never applied', 'agents were never applied')}
      </Link>
    </Dot>
  </p>
);

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
    <>
      <span role="status" className="text-muted text-sm">
        {countText(picked.length)} selected
      </span>
      <Button
        icon={<RefreshCw aria-hidden="true" className="size-4" />}
        disabled={!picked.some(canCheck)}
        onClick={() => onDialog({ kind: 'check', agents: picked })}
      >
        Check now…
      </Button>
      <Button
        icon={<Check className="size-4" />}
        disabled={picked.every((agent) => acceptable(agent).length === 0)}
        onClick={() => onDialog({ kind: 'accept', driftIds: picked.flatMap(acceptable) })}
      >
        Accept…
      </Button>
      <Button
        look="primary"
        icon={<Play aria-hidden="true" className="size-4" />}
        disabled={!picked.some(canRepair)}
        onClick={() => onDialog({ kind: 'repair', agents: picked.filter(canRepair) })}
      >
        Apply…
      </Button>
    </>
  );
}
