import type { Agent, OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Plus, Search } from 'lucide-react';
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from 'react';
import { defaultAgentOrder, firstAgentsSort } from '../../api/agent-list.ts';
import { latestSamplesQuery, useAgentList } from '../../api/agents.ts';
import { reconcileQuery } from '../../api/reconcile.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { Button } from '../../parts/button.tsx';
import { Input } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { useColumnPreference } from '../../parts/table/column-preference.ts';
import { useColumnWidth } from '../../parts/table/column-width.ts';
import { ColumnsMenu } from '../../parts/table/columns-menu.tsx';
import { DataTable } from '../../parts/table/data-table.tsx';
import { agentColumns, TagWidth } from './agent-columns.tsx';
import type { AgentTab } from './agent-filter.ts';
import { agentParam, displayName } from './agent-state.ts';
import { BulkBar } from './bulk-bar.tsx';
import { StateTabs } from './state-tabs.tsx';
import { useAgentFilter, useAgentSelection, useStableSorting } from './use-agent-view.ts';
import { ViewsMenu } from './views-menu.tsx';

// Dialogs load on demand, so that the first rows appear sooner.
const AddMachineDialog = lazy(async () => ({
  default: (await import('../enrollment/add-machine-dialog.tsx')).AddMachineDialog,
}));
const ApproveDialog = lazy(async () => ({ default: (await import('./approve-dialog.tsx')).ApproveDialog }));

const noAgents: readonly Agent[] = [];
const noSamples = {};
const noOff: ReadonlyMap<string, OffAgent> = new Map();
const byId = (off: OffAgent[]): ReadonlyMap<string, OffAgent> => new Map(off.map((each) => [each.node_id, each]));

const keyOf = ({ node_id }: Agent): string => node_id;
const labelOf = (agent: Agent): string => displayName(agent).slice(0, 80);

export function AgentsPage() {
  const navigate = useNavigate();
  const isAdmin = useIsAdmin();
  const [sorting, onSort, order] = useStableSorting(defaultAgentOrder);
  const { agents: loaded, isComplete, error, refetch } = useAgentList(firstAgentsSort(order));
  const agents = loaded ?? noAgents;
  const [preference, setPreference] = useColumnPreference('agents', ['hostname']);
  const isShown = (column: string) => !preference.hidden.includes(column);
  const { data: samples = noSamples } = useQuery({
    ...latestSamplesQuery,
    enabled: isShown('cpu') || isShown('memory'),
  });
  const { data: off = noOff } = useQuery({ ...reconcileQuery(), select: byId });
  const { search, selector, tab, setTab, rows, counts, isFiltered } = useAgentFilter(agents, off);
  const { chosen, setChosen, chosenAgents, hidden } = useAgentSelection(agents, rows);
  // The rows that match a filter may be among the agents that are still loading.
  const isListed = isComplete || rows.length > 0;
  const table = useRef<HTMLDivElement>(null);
  const tagWidth = useColumnWidth(table, 'tags', isListed && isShown('tags'));
  const [dialog, setDialog] = useState<AgentsDialog | null>(null);
  const approve = useCallback((agent: Agent) => setDialog({ kind: 'approve', agent }), []);
  const columns = useMemo(() => agentColumns({ samples, off, onApprove: approve }), [samples, off, approve]);
  const open = useCallback(
    (agent: Agent) => void navigate({ to: '/agents/$agent', params: { agent: agentParam(agent) } }),
    [navigate],
  );
  return (
    <Page
      fill
      title="Agents"
      subtitle={!isComplete && isListed ? <span role="status">Loading all agents…</span> : undefined}
      actions={
        <>
          <ViewsMenu />
          <ColumnsMenu columns={columns} preference={preference} onChange={setPreference} />
          {isAdmin && (
            <Button
              look="primary"
              icon={<Plus aria-hidden="true" className="size-4" />}
              onClick={() => setDialog({ kind: 'add' })}
            >
              Add a machine
            </Button>
          )}
        </>
      }
    >
      <div className="flex h-full min-h-0 flex-col gap-2.5">
        <AgentFilters search={search} selector={selector} />
        <StateTabs tab={tab} counts={isComplete ? counts : null} onTab={setTab} />
        {chosenAgents.length > 0 && (
          <BulkBar
            chosen={chosenAgents}
            hidden={hidden}
            all={agents}
            onClear={() => setChosen(new Set())}
            onDeselect={(ids) => setChosen((now) => new Set([...now].filter((id) => !ids.includes(id))))}
          />
        )}
        <div ref={table} className="min-h-0 flex-1 overflow-hidden rounded-lg border bg-surface">
          {error !== null ? (
            <Failure error={error} retry={() => void refetch()} />
          ) : !isListed ? (
            <SkeletonRows rows={14} label="Loading agents" />
          ) : (
            <TagWidth value={tagWidth}>
              <DataTable
                fill
                label="Agents"
                rows={rows}
                columns={columns}
                rowKey={keyOf}
                rowLabel={labelOf}
                rowHeight={38}
                onOpen={open}
                sorting={sorting}
                onSort={onSort}
                chosen={chosen}
                onChoose={setChosen}
                preference={preference}
                onPreference={setPreference}
                isPartial={!isComplete}
                empty={
                  <NoAgents
                    isFiltered={isFiltered}
                    tab={tab}
                    onAdd={isAdmin ? () => setDialog({ kind: 'add' }) : null}
                  />
                }
              />
            </TagWidth>
          )}
        </div>
      </div>
      <Dialogs dialog={dialog} all={agents} onClose={() => setDialog(null)} />
    </Page>
  );
}

type AgentsDialog = { readonly kind: 'add' } | { readonly kind: 'approve'; readonly agent: Agent };

function Dialogs({
  dialog,
  all,
  onClose,
}: {
  readonly dialog: AgentsDialog | null;
  readonly all: readonly Agent[];
  readonly onClose: () => void;
}) {
  return (
    <Suspense>
      {dialog?.kind === 'add' && <AddMachineDialog onClose={onClose} />}
      {dialog?.kind === 'approve' && <ApproveDialog agents={[dialog.agent]} all={all} onClose={onClose} />}
    </Suspense>
  );
}

/** Return values of `useDebouncedText`. */
interface TypedText {
  readonly text: string;
  readonly set: (text: string) => void;
}

function AgentFilters({ search, selector }: { readonly search: TypedText; readonly selector: TypedText }) {
  const vocabulary = useSelectorVocabulary();
  return (
    <div className="grid gap-2 sm:grid-cols-[minmax(12rem,20rem)_minmax(14rem,1fr)]">
      <div className="relative">
        <Search aria-hidden="true" className="pointer-events-none absolute top-2 left-2.5 size-4 text-muted" />
        <Input
          label="Search"
          hideLabel
          data-search
          type="search"
          placeholder="Name, hostname, id, tag, address"
          className="pl-8"
          value={search.text}
          onChange={(event) => search.set(event.target.value)}
        />
      </div>
      <SelectorInput
        label="Selector"
        hideLabel
        placeholder="Selector: role=web site in (paris,berlin) !attr.container"
        value={selector.text}
        onChange={selector.set}
        vocabulary={vocabulary}
      />
    </div>
  );
}

function NoAgents({
  isFiltered,
  tab,
  onAdd,
}: {
  readonly isFiltered: boolean;
  readonly tab: AgentTab;
  /** Null if the operator may not add machines. */
  readonly onAdd: (() => void) | null;
}) {
  return isFiltered ? (
    <Empty title="No matching agents">
      {tab === 'off' ? 'All agents that match the other filters are in sync.' : 'Try removing a filter.'}
    </Empty>
  ) : (
    <Empty
      title="No agents yet"
      action={
        onAdd !== null && (
          <Button look="primary" onClick={onAdd}>
            Add a machine
          </Button>
        )
      }
    >
      Run one command on a machine, and it appears here.
    </Empty>
  );
}
