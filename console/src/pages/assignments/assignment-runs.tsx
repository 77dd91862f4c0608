import type { RunEntry } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { Panel } from '../../parts/panel.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { loadNextPage } from '../../parts/table/list-table.tsx';
import { TableSkeleton } from '../../parts/table/table-skeleton.tsx';
import { Time } from '../../parts/time.tsx';
import { KindBadge, StatusDot } from '../../parts/work-status.tsx';
import { OperatorName } from '../links.tsx';
import { OutcomeCounts } from '../runs/outcome-counts.tsx';

/** @param isMixed whether the list has runs of several kinds */
const columnsOf = (isMixed: boolean): readonly Column<RunEntry>[] => [
  {
    id: 'status',
    header: 'Status',
    width: isMixed ? '10rem' : '7.5rem',
    cell: ({ run_id, kind, status }) => (
      <Link
        to="/runs/$run"
        params={{ run: run_id }}
        className="flex min-w-0 items-center gap-2 rounded font-medium hover:underline"
      >
        {isMixed && <KindBadge kind={kind} />}
        <StatusDot status={status} />
      </Link>
    ),
  },
  {
    id: 'agents',
    header: 'Agents',
    width: 'minmax(12rem,6fr)',
    phone: 'block',
    cell: ({ outcomes }) => <OutcomeCounts outcomes={outcomes} />,
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
const columnsByKind = { mixed: columnsOf(true), one: columnsOf(false) };

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
  const columns = columnsByKind[kind === undefined ? 'mixed' : 'one'];
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
