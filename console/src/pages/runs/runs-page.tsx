import { type RunEntry, runKinds, runStatuses } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { PlaySquare } from 'lucide-react';
import { useMemo } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { buttonClasses } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { durationText } from '../../parts/resource/resource-row.tsx';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { useFilterValues } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { KindBadge, StatusDot, statusOptions } from '../../parts/work-status.tsx';
import { OperatorName } from '../links.tsx';
import { OutcomeCounts, StatusAndOutcomes } from './outcome-counts.tsx';

const columns: readonly Column<RunEntry>[] = [
  {
    id: 'run',
    header: 'Run',
    width: 'minmax(11rem,1fr)',
    cell: ({ run_id, kind, assignment }) => (
      <Link to="/runs/$run" params={{ run: run_id }} className={`${nameLinkClasses} gap-1`}>
        <span className="w-12 shrink-0">
          <KindBadge kind={kind} />
        </span>
        {assignment === null ? <span className="truncate">selected agents</span> : <Line text={assignment} />}
      </Link>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: '6.5rem',
    // The column of agents includes the status on a phone.
    phone: 'hidden',
    cell: ({ status }) => <StatusDot status={status} />,
  },
  {
    id: 'agents',
    header: 'Agents',
    width: 'minmax(9rem,3fr)',
    from: 'sm',
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
    from: 'lg',
    cell: ({ requested_by }) => <OperatorName id={requested_by} />,
  },
  {
    id: 'id',
    header: 'ID',
    width: '7rem',
    from: '2xl',
    cell: ({ run_id }) => (
      <code className="font-mono text-muted text-xs" title={run_id}>
        …{run_id.slice(-8)}
      </code>
    ),
  },
  {
    id: 'took',
    header: 'Duration',
    width: '5rem',
    align: 'right',
    from: 'sm',
    cell: ({ started_at, finished_at }) => (
      <span className="tabular text-muted">
        {finished_at === null ? '–' : durationText((finished_at - started_at) * 1000) || '<1s'}
      </span>
    ),
  },
  {
    id: 'started',
    header: 'Started',
    width: '5rem',
    align: 'right',
    from: 'sm',
    phone: 'top',
    cell: ({ started_at }) => (
      <span className="text-muted">
        <Time at={started_at} />
      </span>
    ),
  },
];

const filters = [
  { name: 'assignment', label: 'Assignment', placeholder: 'Filter by assignment' },
  { name: 'status', label: 'Status', any: 'Any status', options: statusOptions(runStatuses) },
  { name: 'kind', label: 'Type', any: 'Any type', options: runKinds },
] as const;

export function RunsPage() {
  const query = useInfiniteQuery(runsQuery(useFilterValues(filters)));
  const navigate = useNavigate();
  const rows = useMemo(() => query.data?.pages.flat(), [query.data]);
  return (
    <ListPage
      title="Runs"
      description="Plans and applies of several agents, with the outcome of each agent."
      query={query}
      rows={rows}
      filters={filters}
      columns={columns}
      rowKey={({ run_id }) => run_id}
      rowLabel={({ kind, assignment }) => `${kind} of ${assignment ?? 'selected agents'}`}
      onOpen={({ run_id }) => void navigate({ to: '/runs/$run', params: { run: run_id } })}
      noMatch="No matching runs"
      empty={
        <Empty
          title="No runs yet"
          icon={<PlaySquare />}
          action={
            <Link to="/assignments" className={buttonClasses()}>
              All assignments
            </Link>
          }
        >
          A run plans or applies changes on several agents at once. Start one from an assignment or from selected
          agents.
        </Empty>
      }
    />
  );
}
