import type { Agent } from '@muster/protocol/http';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useDeferredValue, useEffect, useMemo, useState } from 'react';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { runInSlices } from '../../parts/in-slices.ts';
import type { Sorting } from '../../parts/table/data-table.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import type { FleetSync } from '../reconcile/agent-sync.ts';
import { type AgentTab, chooseAgents, indexSearch, splitSearch } from './agent-filter.ts';

const noAgents: readonly Agent[] = [];

/** Returns the filters in the agents page's URL, and the agents that match them. */
export function useAgentFilter(agents: readonly Agent[], sync: FleetSync | null) {
  const [query, setQuery] = useQueryText();
  const search = useDebouncedText(query, setQuery);
  const [status, setTab] = useUrlState<AgentTab | 'away'>('status', 'all');
  // Links and saved views from earlier releases use the word `away` for offline agents.
  const tab: AgentTab = status === 'away' ? 'offline' : status;
  // Renders the rows with lower priority, so that typing stays responsive.
  const searchText = useDeferredValue(search.text);
  const { rows, counts } = useMemo(
    () => chooseAgents(agents, { ...splitSearch(searchText), tab }, sync),
    [agents, searchText, tab, sync],
  );
  useEffect(() => runInSlices(indexSearch(agents), () => {}), [agents]);
  const isFiltered = search.text !== '' || tab !== 'all';
  const onClear = () => {
    search.set('');
    setTab('all');
  };
  return { search, tab, setTab, rows, counts, isFiltered, onClear };
}

/**
 * Returns the search in the URL, and its setter. Links from earlier releases have a separate parameter for the
 * selector, which the first change to the search removes.
 */
function useQueryText(): [query: string, setQuery: (query: string) => void] {
  const { q = '', filter = '' } = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const setQuery = useCallback(
    (query: string) =>
      void navigate({
        to: '.',
        search: (({ q: _, filter: __, ...rest }: Record<string, string | undefined>) =>
          query === '' ? rest : { ...rest, q: query }) as never,
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  );
  return [[q, filter].filter(Boolean).join(' '), setQuery];
}

/** Returns the selected agents, including those that the filters hide. */
export function useAgentSelection(agents: readonly Agent[], rows: readonly Agent[]) {
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
  return { chosen, setChosen, chosenAgents, hidden };
}

/**
 * Returns the sort order in the URL, also as text. The object stays the same between renders, so that rows are not
 * sorted again without a change.
 */
export function useStableSorting(
  fallback: string,
): readonly [sorting: Sorting, onSort: (sorting: Sorting) => void, sort: string] {
  const [sort, setSort] = useUrlState('sort', fallback);
  const sorting = useMemo(
    (): Sorting => ({ column: sort.replace(/^-/, ''), descending: sort.startsWith('-') }),
    [sort],
  );
  const onSort = useCallback(
    ({ column, descending }: Sorting) => setSort(`${descending ? '-' : ''}${column}`),
    [setSort],
  );
  return [sorting, onSort, sort];
}
