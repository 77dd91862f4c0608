import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { runsQuery } from '../../api/runs.ts';
import { Dot } from '../../parts/badge.tsx';
import { linkClasses } from '../../parts/class-names.ts';
import { countedText, countText } from '../../parts/count.ts';
import { Panel } from '../../parts/panel.tsx';
import { Failure, SkeletonRows } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { hasEnded, KindBadge, StatusMark } from '../../parts/work-status.tsx';
import { OutcomeCounts } from '../runs/outcome-counts.tsx';

const allRuns = (
  <Link to="/runs" className={`${linkClasses} text-sm`}>
    All runs
  </Link>
);

const maxRuns = 5;

/** The runs and the number of operations that are in progress. */
export function Running({ queued, running }: { readonly queued: number; readonly running: number }) {
  const query = useInfiniteQuery(runsQuery({ status: 'running' }));
  // A run may have ended since it was listed.
  const runs = query.data?.pages.flat().filter(({ status }) => !hasEnded(status)) ?? [];
  return (
    <Panel title="In progress" flush actions={allRuns}>
      {query.isPending ? (
        <SkeletonRows rows={2} size="entry" />
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <ul className="divide-y">
          {runs.slice(0, maxRuns).map(({ run_id, kind, assignment, started_at, outcomes }) => (
            <li key={run_id}>
              <Link
                to="/runs/$run"
                params={{ run: run_id }}
                className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2 text-sm hover:bg-hover"
              >
                <Dot tone="info" live />
                <span className="flex w-11 shrink-0">
                  <KindBadge kind={kind} />
                </span>
                <span className="flex min-w-0 flex-1 font-medium text-accent">
                  <Line text={assignment ?? 'selected agents'} />
                </span>
                {/* The panel is too narrow for one line. */}
                <span className="order-last flex min-w-0 basis-full pl-5 text-xs">
                  <OutcomeCounts wrap outcomes={outcomes} />
                </span>
                <span className="w-16 shrink-0 text-right text-muted text-xs">
                  <Time at={started_at} />
                </span>
              </Link>
            </li>
          ))}
          {runs.length > maxRuns && <li className="px-4 py-2 text-muted text-xs">and {runs.length - maxRuns} more</li>}
          <li className="px-4 py-2.5 text-muted text-sm">
            {running + queued === 0 ? (
              'No operations are running.'
            ) : (
              <>
                <Link to="/operations" search={{ status: 'running' } as never} className={linkClasses}>
                  {countedText(running, 'operation')} running
                </Link>
                {', '}
                <Link to="/operations" search={{ status: 'queued' } as never} className={linkClasses}>
                  {countText(queued)} queued
                </Link>
              </>
            )}
          </li>
        </ul>
      )}
    </Panel>
  );
}

const maxEnded = 5;
/** Seconds. */
const maxEndedAge = 86_400;

/**
 * The applies that ended within the last day, failures first, and otherwise newest first. Nothing if there are none.
 * Plans are left out, because each dialog that applies plans first.
 */
export function RecentlyEnded({ now }: { readonly now: number }) {
  const { data } = useInfiniteQuery(runsQuery({ kind: 'apply' }));
  const runs = data?.pages
    .flat()
    .filter(({ status, finished_at }) => hasEnded(status) && (finished_at ?? 0) > now / 1_000 - maxEndedAge)
    .toSorted((a, b) => Number(a.status === 'succeeded') - Number(b.status === 'succeeded'))
    .slice(0, maxEnded);
  if (runs === undefined || runs.length === 0) return null;
  return (
    <Panel title="Recently ended" flush actions={allRuns}>
      <ul className="divide-y" aria-label="Recently ended runs">
        {runs.map(({ run_id, assignment, status, outcomes, finished_at }) => (
          <li key={run_id}>
            <Link
              to="/runs/$run"
              params={{ run: run_id }}
              className="flex min-h-11 flex-wrap items-center gap-x-3 px-4 py-2 text-sm hover:bg-hover"
            >
              <StatusMark status={status} />
              <span className="flex min-w-0 flex-1 font-medium text-accent">
                <Line text={assignment ?? 'selected agents'} />
              </span>
              <span className="flex min-w-0 flex-2 text-xs max-sm:order-last max-sm:basis-full max-sm:pl-5">
                <OutcomeCounts wrap outcomes={outcomes} />
              </span>
              <span className="w-16 shrink-0 text-right text-muted text-xs">
                <Time at={finished_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
