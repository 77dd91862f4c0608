import type { OperationStatus } from '@muster/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { ListChecks } from 'lucide-react';
import { useMemo } from 'react';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { operationsQuery } from '../../api/operations.ts';
import { buttonClasses } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { countedText } from '../../parts/count.ts';
import { durationText } from '../../parts/resource/resource-row.tsx';
import { Empty } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { useFilterValues } from '../../parts/table/filters.tsx';
import { ListPage } from '../../parts/table/list-page.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { KindBadge, StatusDot, statusOptions } from '../../parts/work-status.tsx';
import { AgentName, OperatorName } from '../links.tsx';
import { foldPlans, type OperationRow } from './folded-plans.ts';

const statuses: readonly OperationStatus[] = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'interrupted',
  'expired',
];

/** The page that shows a row's operations: the operation, or the run that plans. */
const targetOf = ({ operation_id, run_id, agents }: OperationRow) =>
  (agents === undefined
    ? { to: '/operations/$operation', params: { operation: operation_id } }
    : { to: '/runs/$run', params: { run: run_id } }) as { to: '/operations/$operation'; params: { operation: string } };

const columns: readonly Column<OperationRow>[] = [
  {
    id: 'operation',
    header: 'Operation',
    width: 'minmax(9rem,2fr)',
    cell: (row) => (
      <Link {...targetOf(row)} className={`${nameLinkClasses} gap-1`}>
        <span className="w-12 shrink-0">
          <KindBadge kind={row.kind} />
        </span>
        {row.agents === undefined ? <AgentName id={row.node_id} /> : countedText(row.agents, 'agent')}
      </Link>
    ),
  },
  { id: 'status', header: 'Status', width: '6.25rem', cell: ({ status }) => <StatusDot status={status} /> },
  {
    id: 'summary',
    header: 'Result',
    width: 'minmax(12rem,3fr)',
    from: 'sm',
    phone: 'line',
    cell: ({ summary, kind, error }) =>
      error !== null && summary.total === 0 ? (
        <span className="flex min-w-0 text-bad">
          <Line text={operationErrorText(error)} />
        </span>
      ) : (
        <SummaryLine summary={summary} resultKind={kind} />
      ),
  },
  {
    id: 'modules',
    header: 'Modules',
    width: 'minmax(6rem,2fr)',
    from: 'lg',
    cell: ({ modules }) => (
      <span className="flex min-w-0 text-muted">
        <Line text={modules.length === 0 ? 'assigned modules' : modules.join(', ')} />
      </span>
    ),
  },
  {
    id: 'id',
    header: 'ID',
    width: '6rem',
    from: '2xl',
    cell: ({ operation_id }) => (
      <code className="font-mono text-muted text-xs" title={operation_id}>
        …{operation_id.slice(-8)}
      </code>
    ),
  },
  {
    id: 'by',
    header: 'Requested by',
    width: '7rem',
    from: 'xl',
    cell: ({ requested_by }) => <OperatorName id={requested_by} />,
  },
  {
    id: 'took',
    header: 'Duration',
    width: '5.5rem',
    align: 'right',
    from: 'lg',
    cell: ({ started_at, finished_at }) => (
      <span className="tabular text-muted">
        {started_at === null || finished_at === null ? '–' : durationText((finished_at - started_at) * 1000) || '<1s'}
      </span>
    ),
  },
  {
    id: 'created',
    header: 'Requested',
    width: '5rem',
    from: 'sm',
    phone: 'top',
    align: 'right',
    cell: ({ created_at }) => (
      <span className="text-muted">
        <Time at={created_at} />
      </span>
    ),
  },
];

const filters = [
  { name: 'agent', label: 'Agent', placeholder: 'Filter by agent' },
  { name: 'status', label: 'Status', any: 'Any status', options: statusOptions(statuses) },
  { name: 'kind', label: 'Type', any: 'Any type', options: ['apply', 'plan'] },
] as const;

export function OperationsPage() {
  const filter = useFilterValues(filters);
  const query = useInfiniteQuery(operationsQuery(filter));
  const navigate = useNavigate();
  // Someone who filters by plans wants to see each of them.
  const folds = filter.kind !== 'plan';
  const rows = useMemo((): readonly OperationRow[] | undefined => {
    const operations = query.data?.pages.flatMap(({ operations }) => operations);
    return folds ? operations && foldPlans(operations) : operations;
  }, [query.data, folds]);
  return (
    <ListPage
      title="Operations"
      description="Every plan and apply, by agent."
      query={query}
      rows={rows}
      filters={filters}
      columns={columns}
      // A folded row keeps its key while further plans of its run appear.
      rowKey={(row) => (row.agents === undefined ? row.operation_id : (row.run_id ?? row.operation_id))}
      onOpen={(row) => void navigate(targetOf(row))}
      noMatch="No matching operations"
      empty={
        <Empty
          title="No operations yet"
          icon={<ListChecks />}
          action={
            <Link to="/agents" className={buttonClasses()}>
              All agents
            </Link>
          }
        >
          An operation is one plan or apply on one agent. Start one from the page of an agent.
        </Empty>
      }
    />
  );
}
