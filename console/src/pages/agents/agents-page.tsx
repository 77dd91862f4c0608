import type { Agent } from '@muster/protocol/http';
import { parseSelector } from '@muster/protocol/selector';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Plus, SearchX, Server } from 'lucide-react';
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from 'react';
import { latestSamplesQuery, useAgentList } from '../../api/agents.ts';
import { defaultAgentOrder, firstAgentsSort } from '../../api/live/agent-list.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { allToggled } from '../../parts/table/choosing.ts';
import { type ColumnPreference, useColumnPreference } from '../../parts/table/column-preference.ts';
import { useColumnWidth } from '../../parts/table/column-width.ts';
import { ColumnsMenu } from '../../parts/table/columns-menu.tsx';
import { type Column, DataTable, type Sorting } from '../../parts/table/data-table.tsx';
import { FilterButton, type SelectAll, SortMenu } from '../../parts/table/phone-tools.tsx';
import { TableSkeleton } from '../../parts/table/table-skeleton.tsx';
import { useIsPhone } from '../../parts/table/use-drawn-columns.ts';
import { TagWidth } from '../../parts/tag-chip.tsx';
import { useOpensAddMachine } from '../enrollment/opens-add-machine.ts';
import { useFleetSync } from '../reconcile/use-fleet-sync.ts';
import { agentColumns } from './agent-columns.tsx';
import { type AgentTab, splitSearch } from './agent-filter.ts';
import { agentParam, displayName } from './agent-state.ts';
import { BulkBar } from './bulk-bar.tsx';
import { openRowMenu, type RowDialog } from './row-menu.tsx';
import { StateTabs } from './state-tabs.tsx';
import { useAgentFilter, useAgentSelection, useStableSorting } from './use-agent-view.ts';
import { ViewsMenu } from './views-menu.tsx';

// Dialogs load on demand, so that the first rows appear sooner.
const AddMachineDialog = lazy(() =>
  loadCode(async () => ({ default: (await import('../enrollment/add-machine-dialog.tsx')).AddMachineDialog })),
);
const AgentDialogs = lazy(() =>
  loadCode(async () => ({ default: (await import('./agent-dialogs.tsx')).AgentDialogs })),
);
const TagDialog = lazy(() => loadCode(async () => ({ default: (await import('./tag-dialog.tsx')).TagDialog })));

const noAgents: readonly Agent[] = [];
const noSamples = {};
/** Pixels next to the tags in a row on a phone: the checkbox, the button of the menu, and the padding. */
const besideTags = 120;

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
  const sync = useFleetSync();
  const { search, tab, setTab, rows, counts, isFiltered, onClear } = useAgentFilter(agents, sync);
  const { chosen, setChosen, chosenAgents, hidden } = useAgentSelection(agents, rows);
  // The rows that match a filter may be among the agents that are still loading.
  const isListed = isComplete || rows.length > 0;
  const table = useRef<HTMLDivElement>(null);
  const isPhone = useIsPhone();
  const tagWidth = useColumnWidth(table, isPhone ? null : 'tags', isListed && isShown('tags'));
  const [dialog, setDialog] = useState<AgentsDialog | null>(null);
  const onAdd = isAdmin ? () => setDialog({ kind: 'add' }) : null;
  const asked = useOpensAddMachine();
  const [answered, setAnswered] = useState<number | null>(null);
  if (asked !== answered) {
    setAnswered(asked);
    if (asked !== null && isAdmin) setDialog({ kind: 'add' });
  }
  const onDialog = useCallback((kind: RowDialog, agent: Agent) => setDialog({ kind, agent }), []);
  const columns = useMemo(() => agentColumns({ samples, sync, isPhone, onDialog }), [samples, sync, isPhone, onDialog]);
  const open = useCallback(
    (agent: Agent) => void navigate({ to: '/agents/$agent', params: { agent: agentParam(agent) } }),
    [navigate],
  );
  const isEmpty = isComplete && agents.length === 0 && !isFiltered;
  const selectAll = {
    all: rows.length > 0 && rows.length + hidden === chosen.size,
    toggle: () => setChosen(allToggled(rows.map(keyOf), chosen)),
  };
  return (
    <Page
      fill
      title="Agents"
      description={!isComplete && isListed ? <span role="status">Loading all agents…</span> : undefined}
      actions={<PageActions {...{ columns, preference, isPhone, onAdd }} onPreference={setPreference} />}
    >
      <div className="flex h-full min-h-0 flex-col gap-3 max-sm:gap-2">
        {!isEmpty && (
          <AgentTools
            {...{ search, isPhone, tab, setTab, columns, sorting, onSort, selectAll }}
            counts={isComplete ? counts : null}
          />
        )}
        {chosenAgents.length > 0 && (
          <BulkBar
            chosen={chosenAgents}
            hidden={hidden}
            all={agents}
            onClear={() => setChosen(new Set())}
            onDeselect={(ids) => setChosen((now) => new Set([...now].filter((id) => !ids.includes(id))))}
          />
        )}
        <div
          ref={table}
          onKeyDown={openRowMenu}
          className={classNames('min-h-0 overflow-hidden rounded-lg border bg-surface', !isEmpty && 'flex-1')}
        >
          {error !== null ? (
            <Failure title="Agents could not be loaded" error={error} retry={() => void refetch()} />
          ) : isEmpty ? (
            <NoAgents {...{ isFiltered, tab, onAdd, onClear }} />
          ) : !isListed ? (
            <TableSkeleton columns={columns} hidden={preference.hidden} isSelectable rows={14} label="Loading agents" />
          ) : (
            <TagWidth value={isPhone ? tagWidth - besideTags : tagWidth}>
              <DataTable
                fill
                label="Agents"
                rows={rows}
                columns={columns}
                rowKey={keyOf}
                rowLabel={labelOf}
                onOpen={open}
                sorting={sorting}
                onSort={onSort}
                chosen={chosen}
                onChoose={setChosen}
                preference={preference}
                onPreference={setPreference}
                isPartial={!isComplete}
                empty={<NoAgents {...{ isFiltered, tab, onAdd, onClear }} />}
              />
            </TagWidth>
          )}
        </div>
      </div>
      <Dialogs dialog={dialog} onClose={() => setDialog(null)} />
    </Page>
  );
}

type AgentsDialog = { readonly kind: 'add' } | { readonly kind: RowDialog; readonly agent: Agent };

function Dialogs({ dialog, onClose }: { readonly dialog: AgentsDialog | null; readonly onClose: () => void }) {
  return (
    <Suspense>
      {dialog?.kind === 'add' && <AddMachineDialog onClose={onClose} />}
      {dialog?.kind === 'tag' && <TagDialog agents={[dialog.agent]} remove={false} onClose={onClose} />}
      {dialog !== null && dialog.kind !== 'add' && dialog.kind !== 'tag' && (
        <AgentDialogs agent={dialog.agent} dialog={dialog.kind} onClose={onClose} />
      )}
    </Suspense>
  );
}

function PageActions({
  columns,
  preference,
  onPreference,
  isPhone,
  onAdd,
}: {
  readonly columns: readonly Column<Agent>[];
  readonly preference: ColumnPreference;
  readonly onPreference: (preference: ColumnPreference) => void;
  readonly isPhone: boolean;
  /** Null if the operator may not add machines. */
  readonly onAdd: (() => void) | null;
}) {
  return (
    <>
      <ViewsMenu />
      {!isPhone && <ColumnsMenu columns={columns} preference={preference} onChange={onPreference} />}
      {onAdd !== null && (
        <Button look="primary" icon={<Plus aria-hidden="true" className="size-4" />} onClick={onAdd}>
          Add machine
        </Button>
      )}
    </>
  );
}

/** The search and the filter by state. On a phone, the states are behind a button, and a menu sorts and selects. */
function AgentTools({
  search,
  isPhone,
  tab,
  setTab,
  counts,
  columns,
  sorting,
  onSort,
  selectAll,
}: {
  readonly search: TypedText;
  readonly isPhone: boolean;
  readonly tab: AgentTab;
  readonly setTab: (tab: AgentTab) => void;
  /** Null while loading. */
  readonly counts: Readonly<Record<AgentTab, number>> | null;
  readonly columns: readonly Column<Agent>[];
  readonly sorting: Sorting;
  readonly onSort: (sorting: Sorting) => void;
  readonly selectAll: SelectAll;
}) {
  const stateTabs = <StateTabs tab={tab} counts={counts} onTab={setTab} />;
  return (
    <>
      <div className="flex items-start gap-2">
        <AgentSearch search={search} isShort={isPhone} />
        {isPhone && (
          <>
            <FilterButton active={tab === 'all' ? 0 : 1} onClear={tab === 'all' ? undefined : () => setTab('all')}>
              {stateTabs}
            </FilterButton>
            <SortMenu columns={columns} sorting={sorting} onSort={onSort} choose={selectAll} />
          </>
        )}
      </div>
      {!isPhone && stateTabs}
    </>
  );
}

/** Return values of `useDebouncedText`. */
interface TypedText {
  readonly text: string;
  readonly set: (text: string) => void;
}

const parseSearch = (text: string) => parseSelector(splitSearch(text).selector);

function AgentSearch({ search, isShort }: { readonly search: TypedText; readonly isShort: boolean }) {
  const vocabulary = useSelectorVocabulary();
  return (
    <SelectorInput
      isSearch
      className="flex-1"
      label="Search"
      hideLabel
      placeholder={isShort ? 'Search, or role=web' : 'Search, or filter: role=web site in (paris,berlin)'}
      value={search.text}
      onChange={search.set}
      parse={parseSearch}
      vocabulary={vocabulary}
    />
  );
}

function NoAgents({
  isFiltered,
  tab,
  onAdd,
  onClear,
}: {
  readonly isFiltered: boolean;
  readonly tab: AgentTab;
  readonly onClear: () => void;
  /** Null if the operator may not add machines. */
  readonly onAdd: (() => void) | null;
}) {
  return isFiltered ? (
    <Empty title="No matching agents" icon={<SearchX />} action={<Button onClick={onClear}>Clear filters</Button>}>
      {tab === 'off'
        ? 'All agents that match the other filters are in sync.'
        : tab === 'outdated'
          ? 'All agents that match the other filters have the newest revisions of their modules.'
          : 'Try another search, or clear the filters.'}
    </Empty>
  ) : (
    <Empty
      title="No agents yet"
      icon={<Server />}
      action={
        onAdd !== null && (
          <Button icon={<Plus aria-hidden="true" className="size-4" />} onClick={onAdd}>
            Add machine
          </Button>
        )
      }
    >
      An agent is a machine that Muster manages. Run one command on a machine, and it appears here.
    </Empty>
  );
}
