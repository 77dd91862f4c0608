import { type OffAgent, type OffReason, offReasons } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Check, ShieldCheck, Wrench } from 'lucide-react';
import { useMemo, useState } from 'react';
import { reconcileQuery } from '../../api/fleet.ts';
import { Button } from '../../parts/button.tsx';
import { Checkbox, Input, Select } from '../../parts/form/field.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AcceptDialog, WithdrawDialog } from '../drift/acceptance-dialogs.tsx';
import { acceptable, canRepair, groupOff, reasonLooks } from './off.ts';
import { OffRow } from './off-row.tsx';
import { RepairDialog } from './repair-dialog.tsx';

const initialRows = 60;

type Asked =
  | { readonly kind: 'repair'; readonly agents: readonly OffAgent[] }
  | { readonly kind: 'accept'; readonly driftIds: readonly string[] }
  | { readonly kind: 'withdraw'; readonly driftId: string };

export function ReconcilePage() {
  const [reason, setReason] = useUrlState<OffReason | ''>('reason', '');
  const [filter, setFilter] = useUrlState<string>('filter', '');
  const [accepted, setAccepted] = useUrlState<'' | 'yes'>('accepted', '');
  const typed = useDebouncedText(filter, setFilter);
  const query = useQuery(reconcileQuery({ reason, filter: filter.trim(), accepted: accepted === 'yes' }));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<Asked | null>(null);
  const [maxRows, setMaxRows] = useState(initialRows);
  const navigate = useNavigate();
  const agents = query.data ?? none;
  const groups = useMemo(() => groupOff(agents), [agents]);
  const picked = agents.filter(({ node_id }) => chosen.has(node_id));
  const filtered = reason !== '' || filter !== '' || accepted !== '';
  const choose = (members: readonly OffAgent[], isChosen: boolean) => {
    const next = new Set(chosen);
    for (const { node_id } of members) {
      if (isChosen) next.add(node_id);
      else next.delete(node_id);
    }
    setChosen(next);
  };
  const allChosen = agents.length > 0 && picked.length === agents.length;
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
              onClick={() => setAsked({ kind: 'accept', driftIds: picked.flatMap(acceptable) })}
            >
              Accept
            </Button>
            <Button
              look="primary"
              icon={<Wrench className="size-4" />}
              disabled={!picked.some(canRepair)}
              onClick={() => setAsked({ kind: 'repair', agents: picked.filter(canRepair) })}
            >
              Repair
            </Button>
          </>
        )
      }
    >
      <div className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className="w-64 max-sm:w-full">
          <Input
            label="Selector"
            hideLabel
            placeholder="Selector: role=web"
            data-search
            value={typed.text}
            onChange={(event) => typed.set(event.target.value)}
          />
        </div>
        <div className="w-40">
          <Select
            label="Reason"
            hideLabel
            value={reason}
            onChange={(event) => setReason(event.target.value as OffReason | '')}
          >
            <option value="">Any reason</option>
            {offReasons.map((each) => (
              <option key={each} value={each}>
                {reasonLooks[each].word}
              </option>
            ))}
          </Select>
        </div>
        <Checkbox
          label="Show accepted"
          checked={accepted === 'yes' && reason === ''}
          disabled={reason !== ''}
          title={reason === '' ? undefined : 'Accepted drift has no reason. To show it, choose “Any reason”.'}
          onChange={(event) => setAccepted(event.target.checked ? 'yes' : '')}
        />
        {agents.length > 1 && (
          <div className="sm:ml-auto">
            <Checkbox
              label={`Select all ${agents.length}`}
              checked={allChosen}
              onChange={(event) => choose(agents, event.target.checked)}
            />
          </div>
        )}
      </div>
      {query.isPending ? (
        <div className="rounded-lg border bg-surface">
          <SkeletonRows />
        </div>
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : agents.length === 0 ? (
        <div className="rounded-lg border bg-surface">
          {filtered ? (
            <Empty
              title="No matching agents"
              action={
                <Button onClick={() => void navigate({ to: '/reconcile', search: {} as never })}>Show all</Button>
              }
            />
          ) : (
            <Empty title="Everything is in sync" icon={<ShieldCheck className="size-9 text-good" strokeWidth={1.4} />}>
              No machine deviates from its last apply, and nothing remains to be applied. New deviations appear here
              automatically.
            </Empty>
          )}
        </div>
      ) : (
        <ul className="divide-y overflow-hidden rounded-lg border bg-surface" aria-label="Out of sync">
          {groups.slice(0, maxRows).map((group) => (
            <OffRow
              key={group.key}
              group={group}
              chosen={group.agents.every(({ node_id }) => chosen.has(node_id))}
              onChoose={(isChosen) => choose(group.agents, isChosen)}
              onRepair={() => setAsked({ kind: 'repair', agents: group.agents.filter(canRepair) })}
              onAccept={() => setAsked({ kind: 'accept', driftIds: group.agents.flatMap(acceptable) })}
              onWithdraw={(driftId) => setAsked({ kind: 'withdraw', driftId })}
            />
          ))}
          {groups.length > maxRows && (
            <li className="p-2 text-center">
              <Button small onClick={() => setMaxRows(maxRows + 5 * initialRows)}>
                Show {Math.min(groups.length - maxRows, 5 * initialRows)} more
              </Button>
            </li>
          )}
        </ul>
      )}
      {asked?.kind === 'repair' && <RepairDialog agents={asked.agents} onClose={() => setAsked(null)} />}
      {asked?.kind === 'accept' && (
        <AcceptDialog
          driftIds={asked.driftIds}
          onClose={() => {
            setAsked(null);
            setChosen(new Set());
          }}
        />
      )}
      {asked?.kind === 'withdraw' && <WithdrawDialog driftId={asked.driftId} onClose={() => setAsked(null)} />}
    </Page>
  );
}

const none: readonly OffAgent[] = [];
