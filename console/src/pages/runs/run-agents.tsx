import type { Run } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Empty } from '../../parts/states.tsx';
import { containsText, type FilterTexts } from '../../parts/table/filters.tsx';
import { ListTable } from '../../parts/table/list-table.tsx';
import { runAgentColumns } from './run-agent-columns.tsx';
import { byAgentName, outcomeOfResult, type RunResult } from './run-groups.ts';
import { looks, wordOf } from './run-progress.tsx';

const matches = (result: RunResult, { outcome, agent }: FilterTexts) =>
  (outcome === '' || outcomeOfResult(result) === outcome) && containsText(agent, result.name, result.node_id);

/** The page has already loaded the run, so the list has no loading or error state. */
const loaded = { isPending: false, isError: false, error: null, refetch: () => {} };

export function RunAgents({ run, canaries }: { readonly run: Run; readonly canaries: ReadonlySet<string> }) {
  const { results, kind } = run;
  const navigate = useNavigate();
  const rows = useMemo(() => results.toSorted(byAgentName), [results]);
  const columns = useMemo(() => runAgentColumns(kind, canaries), [kind, canaries]);
  const filters = useMemo(
    () => [
      { name: 'agent', label: 'Find an agent', placeholder: 'Search agents' },
      {
        ...{ name: 'outcome', label: 'Outcome', any: 'Any outcome' },
        options: looks.map((look) => ({ value: look.outcome, label: wordOf(look.outcome, kind) })),
      },
    ],
    [kind],
  );
  return (
    <ListTable
      label="Agents of this run"
      query={loaded}
      rows={rows}
      filters={filters}
      matches={matches}
      // Failures first. Rows with the same status are sorted by name.
      sortedBy="status"
      columns={columns}
      rowKey={({ node_id }) => node_id}
      rowLabel={({ name, node_id }) => name ?? node_id}
      onOpen={({ operation_id, node_id }) =>
        void (operation_id === null
          ? navigate({ to: '/agents/$agent', params: { agent: node_id } })
          : navigate({ to: '/operations/$operation', params: { operation: operation_id } }))
      }
      noMatch="No matching agents"
      empty={<Empty title="No agents">The selector of the assignment matched no agent when the run started.</Empty>}
    />
  );
}
