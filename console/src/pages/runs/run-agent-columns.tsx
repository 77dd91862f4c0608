import type { Run } from '@muster/protocol/http';
import { Badge } from '../../parts/badge.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Line } from '../../parts/text.tsx';
import { StatusDot } from '../../parts/work-status.tsx';
import { AgentLink, OperationLink } from '../links.tsx';
import { outcomeOfResult, type RunResult } from './run-groups.ts';

/** @param canaries node ids of the canaries */
export const runAgentColumns = (kind: Run['kind'], canaries: ReadonlySet<string>): readonly Column<RunResult>[] => [
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
      operation_id === null ? <span className="text-muted">–</span> : <OperationLink id={operation_id} />,
  },
];
