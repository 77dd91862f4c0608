import type { RunEntry } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { loadNextPage } from '../../parts/table/list-table.tsx';
import { TableSkeleton } from '../../parts/table/table-skeleton.tsx';
import { Time } from '../../parts/time.tsx';
import { KindBadge, StatusDot } from '../../parts/work-status.tsx';
import { OperatorName, RunLink } from '../links.tsx';
import { OutcomeCounts, StatusAndOutcomes } from '../runs/outcome-counts.tsx';

const columns: readonly Column<RunEntry>[] = [
  {
    id: 'run',
    header: 'Run',
    width: '4.5rem',
    cell: ({ run_id, kind }) => (
      <RunLink id={run_id}>
        <KindBadge kind={kind} />
        <span className="sr-only">…{run_id.slice(-8)}</span>
      </RunLink>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: 'minmax(6.5rem,1fr)',
    // The column of agents includes the status on a phone.
    phone: 'hidden',
    cell: ({ status }) => <StatusDot status={status} />,
  },
  {
    id: 'agents',
    header: 'Agents',
    width: 'minmax(12rem,6fr)',
    from: 'md',
    phone: 'block',
    cell: ({ status, outcomes }) => (
      <>
        <span className="flex min-w-0 flex-1 max-sm:hidden">
          <OutcomeCounts outcomes={outcomes} />
        </span>
        <span className="flex min-w-0 flex-1 sm:hidden">
          <StatusAndOutcomes {...{ status, outcomes }} />
        </span>
      </>
    ),
  },
  {
    id: 'by',
    header: 'Requested by',
    width: 'minmax(7rem,1fr)',
    from: '2xl',
    cell: ({ requested_by }) => <OperatorName id={requested_by} />,
  },
  {
    id: 'at',
    header: 'Started',
    width: '5.5rem',
    align: 'right',
    phone: 'top',
    cell: ({ started_at }) => (
      <span className="text-muted">
        <Time at={started_at} />
      </span>
    ),
  },
];

export function AssignmentRuns({
  name,
  title,
  kind,
  maxRuns = Number.POSITIVE_INFINITY,
}: {
  readonly name: string;
  readonly title?: string;
  /** Lists the runs of all kinds if omitted. */
  readonly kind?: RunEntry['kind'];
  readonly maxRuns?: number;
}) {
  const navigate = useNavigate();
  const query = useInfiniteQuery(runsQuery({ assignment: name, ...(kind === undefined ? {} : { kind }) }));
  const rows = useMemo(() => query.data?.pages.flat().slice(0, maxRuns) ?? [], [query.data, maxRuns]);
  return (
    <Panel flush {...(title === undefined ? {} : { title })}>
      {query.isPending ? (
        <TableSkeleton columns={columns} rows={5} />
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <DataTable
          label="Runs"
          rows={rows}
          columns={columns}
          rowKey={({ run_id }) => run_id}
          onOpen={({ run_id }) => void navigate({ to: '/runs/$run', params: { run: run_id } })}
          onNearEnd={() => {
            if (rows.length < maxRuns) loadNextPage(query);
          }}
          empty={
            <Empty title={kind === 'apply' ? 'Never applied' : 'No runs yet'}>
              A plan shows what an apply would change on each agent, and changes nothing.
            </Empty>
          }
        />
      )}
    </Panel>
  );
}
