import type { DriftRecord } from '@muster/protocol/http';
import { SummaryLine } from '../../parts/summary.tsx';
import { Line } from '../../parts/text.tsx';
import { driftText } from '../reconcile/issues.ts';

/** The result of a check in one line: the error, the drifted resources, or the counts. */
export function DriftFindings({ record: { error, status, resources, summary } }: { readonly record: DriftRecord }) {
  if (error !== null)
    return (
      <span className="flex min-w-0 text-bad">
        <Line text={error} />
      </span>
    );
  if (status !== 'drifted' || resources.length === 0) return <SummaryLine summary={summary} resultKind="drift" />;
  return (
    <span className="flex min-w-0 font-mono text-xs">
      <Line text={resources.map(driftText).join('; ')} />
    </span>
  );
}
