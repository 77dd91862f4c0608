import type { Run } from '@muster/protocol/http';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { Badge } from '../../parts/badge.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { Empty } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { type Column, DataTable, type Sorting } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { StatusDot } from '../../parts/work-status.tsx';
import { AgentLink } from '../links.tsx';
import { outcomeOfResult, type RunResult } from './run-groups.ts';
import { looks, wordOf } from './run-progress.tsx';

export function RunAgents({ run, canaries }: { readonly run: Run; readonly canaries: ReadonlySet<string> }) {
  const { results, kind } = run;
  const [outcome, setOutcome] = useUrlState<string>('outcome', '');
  const [search, setSearch] = useUrlState<string>('agent', '');
  const [sorting, setSorting] = useState<Sorting | null>({ column: 'agent', descending: false });
  const navigate = useNavigate();
  const columns = useMemo(
    (): readonly Column<RunResult>[] => [
      {
        id: 'agent',
        header: 'Agent',
        width: 'minmax(7rem,2fr)',
        sort: ({ name, node_id }) => name ?? node_id,
        cell: ({ node_id, name }) => (
          <span className="flex min-w-0 items-center gap-2">
            <AgentLink id={node_id} name={name} />
            {canaries.has(node_id) && <Badge tone="info">canary</Badge>}
          </span>
        ),
      },
      {
        id: 'status',
        header: 'Status',
        width: '7rem',
        sort: ({ status }) => status,
        cell: (result) =>
          outcomeOfResult(result) === 'untried' ? (
            <span className="text-muted">skipped</span>
          ) : outcomeOfResult(result) === 'waiting' && result.operation_id === null ? (
            <span className="text-muted">waiting</span>
          ) : (
            <StatusDot status={result.status} />
          ),
      },
      {
        id: 'result',
        header: 'Result',
        width: 'minmax(6rem,4fr)',
        cell: ({ summary, error }) =>
          error !== null ? (
            <span className="flex min-w-0">
              <Line text={error} />
            </span>
          ) : (
            <SummaryLine summary={summary} resultKind={kind} />
          ),
      },
      {
        id: 'operation',
        header: 'Operation',
        width: '8rem',
        from: 'md',
        cell: ({ operation_id }) =>
          operation_id === null ? (
            <span className="text-muted">–</span>
          ) : (
            <Link
              to="/operations/$operation"
              params={{ operation: operation_id }}
              className="rounded text-accent hover:underline"
            >
              <code className="font-mono text-xs">…{operation_id.slice(-8)}</code>
            </Link>
          ),
      },
    ],
    [kind, canaries],
  );
  const shown = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return results.filter(
      (result) =>
        (outcome === '' || outcomeOfResult(result) === outcome) &&
        (wanted === '' || `${result.name ?? ''} ${result.node_id}`.toLowerCase().includes(wanted)),
    );
  }, [results, outcome, search]);
  return (
    <div className="rounded-lg border bg-surface">
      <div className="flex flex-wrap gap-2 border-b p-2.5">
        <div className="w-52 max-sm:w-full">
          <Input
            label="Find an agent"
            hideLabel
            placeholder="Find an agent…"
            data-search
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
        </div>
        <div className="w-44">
          <Select label="Outcome" hideLabel value={outcome} onChange={(event) => setOutcome(event.target.value)}>
            <option value="">Any outcome</option>
            {looks.map((look) => (
              <option key={look.outcome} value={look.outcome}>
                {wordOf(look.outcome, kind)}
              </option>
            ))}
          </Select>
        </div>
      </div>
      <DataTable
        label="Agents of this run"
        rows={shown}
        columns={columns}
        rowKey={({ node_id }) => node_id}
        rowLabel={({ name, node_id }) => name ?? node_id}
        sorting={sorting}
        onSort={setSorting}
        onOpen={({ operation_id, node_id }) =>
          void (operation_id === null
            ? navigate({ to: '/agents/$agent', params: { agent: node_id } })
            : navigate({ to: '/operations/$operation', params: { operation: operation_id } }))
        }
        empty={
          results.length === 0 ? (
            <Empty title="No agents">The selector of the assignment matched no agent when the run started.</Empty>
          ) : (
            <Empty title="No matching agents">Try another name, or any outcome.</Empty>
          )
        }
      />
    </div>
  );
}
