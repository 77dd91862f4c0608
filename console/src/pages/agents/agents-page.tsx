import type { Agent, OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Plus, Search } from 'lucide-react';
import { useCallback, useDeferredValue, useMemo, useRef, useState } from 'react';
import { agentsQuery, latestSamplesQuery, useSelectorVocabulary } from '../../api/agents.ts';
import { reconcileQuery } from '../../api/fleet.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { buttonClasses } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Input } from '../../parts/form/field.tsx';
import { SelectorInput } from '../../parts/form/selector-input.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { Page } from '../../parts/page.tsx';
import { Empty, Failure, SkeletonRows } from '../../parts/states.tsx';
import { useColumnPreference } from '../../parts/table/column-preference.ts';
import { useColumnRoom } from '../../parts/table/column-room.ts';
import { ColumnsMenu } from '../../parts/table/columns-menu.tsx';
import { DataTable, type Sorting } from '../../parts/table/data-table.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { agentColumns } from './agent-columns.tsx';
import { type AgentTab, agentTabs, chooseAgents } from './agent-filter.ts';
import { agentParam, displayName } from './agent-state.ts';
import { BulkBar } from './bulk-bar.tsx';
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
  const { data, error, isPending, refetch } = useQuery(agentsQuery);
  const agents = data ?? noAgents;
  const [preference, setPreference] = useColumnPreference('agents', ['hostname']);
  const showsMetrics = !preference.hidden.includes('cpu') || !preference.hidden.includes('memory');
  const { data: samples = noSamples } = useQuery({ ...latestSamplesQuery, enabled: showsMetrics });
  const { data: off = noOff } = useQuery({ ...reconcileQuery(), select: byId });

  const [q, setQ] = useUrlState('q', '');
  const [filter, setFilter] = useUrlState('filter', '');
  const [tab, setTab] = useUrlState<AgentTab>('status', 'all');
  const [sort, setSort] = useUrlState('sort', 'agent');
  const search = useDebouncedText(q, setQ);
  const selector = useDebouncedText(filter, setFilter);
  // Keeps typing responsive: the rows are updated with lower priority.
  const searchText = useDeferredValue(search.text);
  const selectorText = useDeferredValue(selector.text);
  const offIds = useMemo(() => new Set(off.keys()), [off]);
  const { rows, counts } = useMemo(
    () => chooseAgents(agents, { search: searchText, selector: selectorText, tab }, offIds),
    [agents, searchText, selectorText, tab, offIds],
  );
  const fleet = useMemo(() => fleetText(agents), [agents]);
  const table = useRef<HTMLDivElement>(null);
  const tagRoom = useColumnRoom(table, 'tags', data !== undefined && !preference.hidden.includes('tags'));
  const columns = useMemo(() => agentColumns({ samples, off, tagRoom }), [samples, off, tagRoom]);
  const sorting = useMemo(
    (): Sorting => ({ column: sort.replace(/^-/, ''), descending: sort.startsWith('-') }),
    [sort],
  );
  const onSort = useCallback(
    ({ column, descending }: Sorting) => setSort(`${descending ? '-' : ''}${column}`),
    [setSort],
  );
  const vocabulary = useSelectorVocabulary();

  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const chosenAgents = useMemo(
    () => (chosen.size === 0 ? noAgents : agents.filter(({ node_id }) => chosen.has(node_id))),
    [agents, chosen],
  );
  const hidden = useMemo(() => {
    if (chosen.size === 0) return 0;
    const shown = rows.reduce((count, { node_id }) => (chosen.has(node_id) ? count + 1 : count), 0);
    return chosenAgents.length - shown;
  }, [rows, chosen, chosenAgents]);
  const open = useCallback(
    (agent: Agent) => void navigate({ to: '/agents/$agent', params: { agent: agentParam(agent) } }),
    [navigate],
  );
  const isFiltered = search.text !== '' || selector.text !== '' || tab !== 'all';

  return (
    <Page
      fill
      title="Agents"
      subtitle={data === undefined ? undefined : fleet}
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
        <Tabs tab={tab} counts={data === undefined ? null : counts} onTab={setTab} />
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
          {isPending ? (
            <SkeletonRows rows={14} label="Loading agents" />
          ) : error !== null && data === undefined ? (
            <Failure error={error} retry={() => void refetch()} />
          ) : (
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
              empty={
                isFiltered ? (
                  <Empty title="No matching agents">
                    {tab === 'off' ? 'All agents found are in sync.' : 'Try removing a filter.'}
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
                )
              }
            />
          )}
        </div>
      </div>
    </Page>
  );
}

/** Counts of the whole fleet, regardless of filters. */
function fleetText(agents: readonly Agent[]): string {
  const { connected, away, pending } = chooseAgents(agents, { search: '', selector: '', tab: 'all' }, noIds).counts;
  return [
    `${connected} connected`,
    ...(away > 0 ? [`${away} away`] : []),
    ...(pending > 0 ? [pending === 1 ? '1 awaits approval' : `${pending} await approval`] : []),
  ].join(' · ');
}
const noIds: ReadonlySet<string> = new Set();

const labels: Record<AgentTab, string> = {
  all: 'All',
  approved: 'Approved',
  connected: 'Connected',
  away: 'Away',
  off: 'Out of sync',
  pending: 'Pending',
  rejected: 'Rejected',
};

function Tabs({
  tab,
  counts,
  onTab,
}: {
  readonly tab: AgentTab;
  /** Null while loading. */
  readonly counts: Readonly<Record<AgentTab, number>> | null;
  readonly onTab: (tab: AgentTab) => void;
}) {
  return (
    <div role="group" aria-label="State" className="-mx-1 flex shrink-0 gap-1 overflow-x-auto px-1 py-0.5">
      {agentTabs.map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={tab === each}
          onClick={() => onTab(each)}
          className={classNames(
            'flex h-7 shrink-0 items-center gap-1.5 rounded-full border px-2.5 text-xs',
            tab === each
              ? 'border-accent/40 bg-accent-soft font-medium text-accent'
              : 'border-transparent text-muted hover:bg-hover hover:text-text',
          )}
        >
          {labels[each]}
          {counts !== null && (
            <span
              className={classNames(
                'tabular',
                each === 'pending' && counts.pending > 0 && tab !== each && 'font-semibold text-warn',
                each === 'away' && counts.away > 0 && tab !== each && 'font-semibold text-bad',
              )}
            >
              {counts[each]}
            </span>
          )}
        </button>
      ))}
    </div>
  );
}
