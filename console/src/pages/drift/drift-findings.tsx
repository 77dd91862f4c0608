import type { DriftRecord } from '@muster/protocol/http';
import { Fragment } from 'react';
import { SummaryLine } from '../../parts/summary.tsx';
import { lineText, TwoLineText, twoLineClasses } from '../../parts/text.tsx';
import { driftText, nameOf } from '../reconcile/issues.ts';

/** The result of a check in at most two lines: the error, the drifted resources, or the counts. */
export function DriftFindings({ record: { error, status, resources, summary } }: { readonly record: DriftRecord }) {
  if (error !== null) return <TwoLineText text={error} className="text-bad" />;
  if (status !== 'drifted' || resources.length === 0) return <SummaryLine summary={summary} resultKind="drift" />;
  return (
    <span className={twoLineClasses} title={lineText(resources.map(driftText).join('; '), 1_000)}>
      {resources.slice(0, maxNamed).map((resource, at) => {
        const name = nameOf(resource);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the resources of a check keep their order
          <Fragment key={at}>
            {at > 0 && '; '}
            <bdi className="font-mono text-xs">{lineText(name, 100)}</bdi>
            <bdi>{lineText(driftText(resource).slice(name.length), 200)}</bdi>
          </Fragment>
        );
      })}
    </span>
  );
}

/** Maximum number of resources to name. More do not fit. */
const maxNamed = 8;
