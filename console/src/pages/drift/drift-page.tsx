import { type DriftRecord, driftStatuses } from '@muster/protocol/http';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { latestDriftQuery } from '../../api/drift.ts';
import { Button, buttonClasses } from '../../parts/button.tsx';
import { Input, Select } from '../../parts/form/field.tsx';
import { useDebouncedText } from '../../parts/form/use-debounced.ts';
import { Page } from '../../parts/page.tsx';
import { Empty } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { type Column, DataTable } from '../../parts/table/data-table.tsx';
import { fetchMore, ListPanel } from '../../parts/table/list-panel.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AgentLink } from '../links.tsx';
import { DriftStatus, triggerWords } from './drift-status.tsx';

const columns: readonly Column<DriftRecord>[] = [
  { id: 'agent', header: 'Agent', width: 'minmax(6rem,2fr)', cell: ({ node_id }) => <AgentLink id={node_id} /> },
  {
    id: 'status',
    header: 'Result',
    width: '8rem',
    cell: (record) => (
      <Link to="/drift/$record" params={{ record: record.drift_id }} className="rounded hover:underline">
        <DriftStatus record={record} />
      </Link>
    ),
  },
  {
    id: 'what',
    header: 'Resources',
    width: 'minmax(10rem,4fr)',
    from: 'sm',
    cell: ({ resources, summary, error, status }) =>
      error !== null ? (
        <span className="flex min-w-0 text-bad">
          <Line text={error} />
        </span>
      ) : status === 'drifted' ? (
        <span className="flex min-w-0 font-mono text-xs">
          <Line text={resources.map(({ identity }) => identity).join(', ')} />
        </span>
      ) : (
        <SummaryLine summary={summary} resultKind="drift" />
      ),
  },
  {
    id: 'trigger',
    header: 'Trigger',
    width: 'minmax(8rem,1fr)',
    from: 'lg',
    cell: ({ trigger }) => <span className="text-muted">{triggerWords[trigger]}</span>,
  },
  {
    id: 'checked',
    header: 'Checked',
    width: '5rem',
    align: 'right',
    cell: ({ checked_at }) => (
      <span className="text-muted">
        <Time at={checked_at} />
      </span>
    ),
  },
];

export function DriftPage() {
  const [status, setStatus] = useUrlState<string>('status', '');
  const [filter, setFilter] = useUrlState<string>('filter', '');
  const typed = useDebouncedText(filter, setFilter);
  const query = useInfiniteQuery(latestDriftQuery({ status, filter: filter.trim() }));
  const navigate = useNavigate();
  const rows = useMemo(() => query.data?.pages.flat() ?? [], [query.data]);
  const filtered = status !== '' || filter !== '';
  const clear = () => void navigate({ to: '/drift', search: {} as never });
  return (
    <Page
      title="Drift"
      subtitle="The latest check of each agent, compared with its last apply."
      actions={
        <Link to="/reconcile" className={buttonClasses('plain')}>
          Reconcile
        </Link>
      }
      fill
    >
      <ListPanel
        query={query}
        rows={12}
        filters={
          <>
            <div className="w-72 max-sm:w-full">
              <Input
                label="Selector"
                hideLabel
                placeholder="Selector: role=web env=production"
                data-search
                value={typed.text}
                onChange={(event) => typed.set(event.target.value)}
              />
            </div>
            <div className="w-36">
              <Select label="Result" hideLabel value={status} onChange={(event) => setStatus(event.target.value)}>
                <option value="">Any result</option>
                {driftStatuses.map((each) => (
                  <option key={each} value={each}>
                    {each.replace('_', ' ')}
                  </option>
                ))}
              </Select>
            </div>
          </>
        }
        onClear={filtered ? clear : undefined}
      >
        <DataTable
          label="Drift of each agent"
          rows={rows}
          columns={columns}
          rowKey={({ drift_id }) => drift_id}
          onOpen={({ drift_id }) => void navigate({ to: '/drift/$record', params: { record: drift_id } })}
          onNearEnd={() => fetchMore(query)}
          fill
          empty={
            filtered ? (
              <Empty title="No matching agents" action={<Button onClick={clear}>Show all</Button>} />
            ) : (
              <Empty title="No checks yet">
                After the first apply, a machine is checked on schedule. You can also check it from its page.
              </Empty>
            )
          }
        />
      </ListPanel>
    </Page>
  );
}
