import type { Agent, OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus, Search } from 'lucide-react';
import { useCallback, useMemo, useRef } from 'react';
import { defaultAgentOrder, firstAgentsSort } from '../../api/agent-list.ts';
import { latestSamplesQuery, useAgentList } from '../../api/agents.ts';
import { reconcileQuery } from '../../api/reconcile.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { useSelectorVocabulary } from '../../api/tags.ts';
import { buttonClasses } from '../../parts/button.tsx';
import { countText } from '../../parts/count.ts';
import { Input } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { useColumnPreference } from '../../parts/table/column-preference.ts';
import { useColumnWidth } from '../../parts/table/column-width.ts';
import { ColumnsMenu } from '../../parts/table/columns-menu.tsx';
import { DataTable } from '../../parts/table/data-table.tsx';
import { agentColumns, TagWidth } from './agent-columns.tsx';
import { type AgentTab, countAgents } from './agent-filter.ts';
import { agentParam, displayName } from './agent-state.ts';
import { BulkBar } from './bulk-bar.tsx';
import { StateTabs } from './state-tabs.tsx';
import { useAgentFilter, useAgentSelection, useStableSorting } from './use-agent-view.ts';
import { ViewsMenu } from './views-menu.tsx';

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
  const fleet = useMemo(() => fleetText(agents), [agents]);
  // The rows that match a filter may be among the agents that are still loading.
  const isListed = isComplete || rows.length > 0;
  const table = useRef<HTMLDivElement>(null);
  const tagWidth = useColumnWidth(table, 'tags', isListed && isShown('tags'));
  const columns = useMemo(() => agentColumns({ samples, off }), [samples, off]);
  const open = useCallback(
    (agent: Agent) => void navigate({ to: '/agents/$agent', params: { agent: agentParam(agent) } }),
    [navigate],
  );
  return (
    <Page
      fill
      title="Agents"
      subtitle={isComplete ? fleet : isListed ? <span role="status">Loading all agents…</span> : undefined}
      actions={
        <>
          <ViewsMenu />
          <ColumnsMenu columns={columns} preference={preference} onChange={setPreference} />
          {isAdmin && (
            <Link to="/enrolment" className={buttonClasses('primary')}>
              <Plus aria-hidden="true" className="size-4" />
              Add agents
            </Link>
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
                empty={<NoAgents isFiltered={isFiltered} tab={tab} isAdmin={isAdmin} />}
              />
            </TagWidth>
          )}
        </div>
      </div>
    </Page>
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
  isAdmin,
}: {
  readonly isFiltered: boolean;
  readonly tab: AgentTab;
  readonly isAdmin: boolean;
}) {
  return isFiltered ? (
    <Empty title="No matching agents">
      {tab === 'off' ? 'All agents that match the other filters are in sync.' : 'Try removing a filter.'}
    </Empty>
  ) : (
    <Empty
      title="No agents yet"
      action={
        isAdmin && (
          <Link to="/enrolment" className={buttonClasses('primary')}>
            Create an enrollment token
          </Link>
        )
      }
    >
      Create a token and run its command on a machine. The machine then appears here.
    </Empty>
  );
}

/** Counts all agents in the fleet, regardless of filters. */
function fleetText(agents: readonly Agent[]): string {
  const { connected, away, pending } = countAgents(agents, noIds);
  return [
    `${countText(connected)} connected`,
    ...(away > 0 ? [`${countText(away)} away`] : []),
    ...(pending > 0 ? [pending === 1 ? '1 awaits approval' : `${countText(pending)} await approval`] : []),
  ].join(' · ');
}
const noIds: ReadonlySet<string> = new Set();
