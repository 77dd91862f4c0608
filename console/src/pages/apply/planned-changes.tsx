import type { Operation } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { anchorText } from '../../parts/resource/anchor.ts';
import { ResultList } from '../../parts/resource/resource-results.tsx';
import { planText } from './plan-words.ts';

/** The changes in an agent's plan: their counts, and a row for each resource that expands to its diff. */
export function PlannedChanges({ plan }: { readonly plan: Operation }) {
  const { summary, resources, operation_id } = plan;
  const navigate = useNavigate();
  const isEmpty = summary.changed + summary.removed + summary.failed === 0;
  return (
    <div className="space-y-3">
      <p className="text-sm">
        <strong className="tabular font-medium">{planText(summary)}</strong>
        {summary.failed > 0 && <span className="text-bad">, {summary.failed} failed</span>}
        {isEmpty && (
          <span className="text-muted">. The machine already matches. An apply records that, and changes nothing.</span>
        )}
      </p>
      <ResultList
        folded
        results={resources.filter(({ status }) => status !== 'unchanged' && status !== 'skipped')}
        resultKind="plan"
        onAnchor={(anchor) =>
          void navigate({
            to: '/operations/$operation',
            params: { operation: operation_id },
            hash: anchorText(anchor),
          })
        }
      />
    </div>
  );
}
