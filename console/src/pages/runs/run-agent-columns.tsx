import type { Run } from '@muster/protocol/http';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { TwoLineText } from '../../parts/text.tsx';
import { StatusDot } from '../../parts/work-status.tsx';
import { AgentLink } from '../links.tsx';
import { outcomeOfResult, outcomeOrder, type RunResult, reasonOfHalt } from './run-groups.ts';

/** @param canaries node ids of the canaries */
export const runAgentColumns = (kind: Run['kind'], canaries: ReadonlySet<string>): readonly Column<RunResult>[] => [
  {
    id: 'agent',
    header: 'Agent',
    width: 'minmax(7rem,2fr)',
    sort: ({ name, node_id }) => name ?? node_id,
    cell: ({ node_id, name }) => (
      <span className="flex min-w-0 items-center gap-2">
        <span className="flex min-w-0 font-medium">
          <AgentLink id={node_id} name={name} />
        </span>
        {canaries.has(node_id) && (
          <span className="shrink-0">
            <Badge>canary</Badge>
          </span>
        )}
      </span>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: '7rem',
    phone: 'top',
    sort: (result) => outcomeOrder.indexOf(outcomeOfResult(result)),
    cell: (result) =>
      outcomeOfResult(result) === 'untried' ? (
        <Dot tone="neutral">skipped</Dot>
      ) : outcomeOfResult(result) === 'waiting' && result.operation_id === null ? (
        <Dot tone="neutral">waiting</Dot>
      ) : (
        <StatusDot status={result.status} />
      ),
  },
  {
    id: 'result',
    header: 'Result',
    width: 'minmax(6rem,4fr)',
    from: 'sm',
    phone: 'block',
    cell: ({ summary, error, operation_id }) =>
      // The page states above the list why the run was halted.
      error !== null && reasonOfHalt(error) !== null ? (
        <span className="text-muted max-sm:hidden">–</span>
      ) : error !== null ? (
        <TwoLineText text={operationErrorText(error)} className={operation_id === null ? 'text-muted' : ''} />
      ) : (
        <SummaryLine summary={summary} resultKind={kind} />
      ),
  },
];
