import type { DriftRecord } from '@muster/protocol/http';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { GitCompareArrows } from 'lucide-react';
import { useMemo } from 'react';
import { latestDriftQuery } from '../../api/drift.ts';
import { overviewQuery } from '../../api/overview.ts';
import { buttonClasses } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { Empty } from '../../parts/states.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { useFilterValues } from '../../parts/table/filters.tsx';
import { ListTable } from '../../parts/table/list-table.tsx';
import { Time } from '../../parts/time.tsx';
import { AgentLink } from '../links.tsx';
import { DriftFindings } from './drift-findings.tsx';
import { DriftStatus, statusOptions, triggerWords } from './drift-status.tsx';

const columns: readonly Column<DriftRecord>[] = [
  {
    id: 'agent',
    header: 'Agent',
    width: 'minmax(6rem,2fr)',
    cell: ({ node_id }) => (
      <span className="flex min-w-0 font-medium">
        <AgentLink id={node_id} />
      </span>
    ),
  },
  {
    id: 'status',
    header: 'Result',
    width: '8rem',
    from: 'sm',
    phone: 'line',
    cell: (record) => (
      <Link to="/drift/$record" params={{ record: record.drift_id }} className="min-w-0 rounded hover:underline">
        <DriftStatus record={record} />
      </Link>
    ),
  },
  {
    id: 'what',
    header: 'Resources',
    width: 'minmax(8rem,4fr)',
    from: 'sm',
    phone: 'block',
    cell: (record) => <DriftFindings record={record} />,
  },
  {
    id: 'trigger',
    header: 'Trigger',
    width: '9rem',
    from: 'lg',
    cell: ({ trigger }) => <span className="text-muted">{triggerWords[trigger]}</span>,
  },
  {
    id: 'checked',
    header: 'Checked',
    width: '5rem',
    align: 'right',
    from: 'sm',
    phone: 'top',
    cell: ({ checked_at }) => (
      <span className="text-muted">
        <Time at={checked_at} />
      </span>
    ),
  },
];

const filters = [
  { name: 'filter', label: 'Selector', placeholder: 'Filter: role=web' },
  {
    ...{ name: 'status', label: 'Result', any: 'Any result' },
    options: statusOptions,
  },
] as const;

/** Lists the latest check of each agent. */
export function DriftChecks() {
  const filter = useFilterValues(filters);
  const query = useInfiniteQuery(latestDriftQuery(filter));
  const { data: overview } = useQuery(overviewQuery);
  const navigate = useNavigate();
  const rows = useMemo(() => query.data?.pages.flat(), [query.data]);
  const unchecked = Object.values(filter).some(Boolean) ? 0 : (overview?.drift.unchecked ?? 0);
  const table = (
    <ListTable
      fill
      label="Drift of each agent"
      query={query}
      rows={rows}
      filters={filters}
      columns={columns}
      rowKey={({ drift_id }) => drift_id}
      onOpen={({ drift_id }) => void navigate({ to: '/drift/$record', params: { record: drift_id } })}
      noMatch="No matching agents"
      empty={
        <Empty
          title="No checks yet"
          icon={<GitCompareArrows />}
          action={
            <Link to="/agents" className={buttonClasses()}>
              All agents
            </Link>
          }
        >
          After the first apply, each machine is checked for drift on a schedule. You can also check it from its page.
        </Empty>
      }
    />
  );
  return (
    <div className="flex h-full min-h-0 flex-col gap-3">
      {rows !== undefined && rows.length > 0 && unchecked > 0 && (
        <p className="text-muted text-sm">
          {countedText(unchecked, 'agent')} not checked yet. Scheduled checks start after the first apply.
        </p>
      )}
      {table}
    </div>
  );
}
