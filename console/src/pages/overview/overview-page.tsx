import type { Overview } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ArrowRight, ShieldCheck } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import type { OffFinding } from '../../../../client/src/reason-words.ts';
import { assignmentsQuery } from '../../api/assignments.ts';
import { loadCode } from '../../api/live/load-code.ts';
import { useLiveState } from '../../api/live/use-live-state.ts';
import { modulesQuery } from '../../api/modules/modules.ts';
import { overviewQuery } from '../../api/overview.ts';
import { useIsAdmin } from '../../api/sign-in/use-session.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { countedText } from '../../parts/count.ts';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Failure } from '../../parts/states.tsx';
import { Time, useNow } from '../../parts/time.tsx';
import { agentCount, agentShares, type Need, needsOf, syncShares } from './attention.ts';
import { OverviewSkeleton, overviewColumns } from './overview-skeleton.tsx';
import { RecentEvents } from './recent-events.tsx';
import { RecentlyEnded, Running } from './recent-runs.tsx';
import { type ShareLink, Shares } from './shares.tsx';

// Loaded on demand, because only new fleets show the first steps.
const FirstSteps = lazy(() => loadCode(async () => ({ default: (await import('./first-steps.tsx')).FirstSteps })));

const RepairAllDialog = lazy(() =>
  loadCode(async () => ({ default: (await import('../reconcile/repair-all-dialog.tsx')).RepairAllDialog })),
);

const ApprovePending = lazy(() =>
  loadCode(async () => ({ default: (await import('./approve-pending.tsx')).ApprovePending })),
);

export function OverviewPage() {
  const query = useQuery(overviewQuery);
  const { data: modules } = useQuery(modulesQuery);
  const { data: assignments } = useQuery(assignmentsQuery);
  const isAdmin = useIsAdmin();
  const live = useLiveState() === 'live';
  const now = useNow();
  if (query.isPending) return <OverviewSkeleton />;
  if (query.isError)
    return (
      <Page title="Overview">
        <Failure error={query.error} retry={() => void query.refetch()} />
      </Page>
    );
  const overview = query.data;
  const { agents, operations } = overview;
  const isNew = agents.approved === 0 || modules?.length === 0 || assignments?.length === 0;
  const needs = needsOf(overview, now);
  return (
    <Page
      title="Overview"
      subtitle={
        <>
          {countedText(agentCount(overview), 'agent')}
          {/* The time is shown only while the event stream is disconnected, because the data is otherwise current. */}
          {!live && (
            <>
              , as of <Time at={overview.as_of} />
            </>
          )}
        </>
      }
    >
      <div className={overviewColumns}>
        <div className="min-w-0 space-y-4">
          {isNew && (
            <Suspense>
              <FirstSteps
                isAdmin={isAdmin}
                pending={agents.pending}
                approved={agents.approved}
                modules={modules?.length ?? 0}
                assignments={assignments?.length ?? 0}
              />
            </Suspense>
          )}
          {(needs.length > 0 || !isNew) && <Attention needs={needs} />}
          {agentCount(overview) > 0 && <Fleet overview={overview} />}
          {!isNew && <RecentlyEnded now={now} />}
        </div>
        <div className="min-w-0 space-y-4">
          {!isNew && <Running queued={operations.queued} running={operations.running} />}
          <RecentEvents />
        </div>
      </div>
    </Page>
  );
}

/** Lists of the agents in each sync state. */
const syncLinks: Readonly<Record<SyncState, ShareLink>> = {
  in_sync: { to: '/agents', search: { status: 'in_sync' } },
  out_of_sync: { to: '/out-of-sync' },
  outdated: { to: '/out-of-sync', search: { tab: 'outdated' } },
  accepted: { to: '/out-of-sync', search: { tab: 'accepted' } },
  never_applied: { to: '/agents', search: { status: 'never_applied' } },
};

function Fleet({ overview }: { readonly overview: Overview }) {
  return (
    <Panel title="Agents">
      <div className="space-y-6">
        <Shares
          title="Connection"
          label="Agents by state"
          shares={agentShares(overview)}
          linkOf={({ id }) => ({ to: '/agents', search: { status: id } })}
        />
        {overview.agents.approved > 0 && (
          <Shares
            title="Desired state"
            label="Agents by sync state"
            shares={syncShares(overview)}
            linkOf={({ id }) => syncLinks[id]}
          />
        )}
      </div>
    </Panel>
  );
}

function Attention({ needs }: { readonly needs: readonly Need[] }) {
  const [repairing, setRepairing] = useState<{ readonly reason: OffFinding; readonly count: number } | null>(null);
  const [isApproving, setApproving] = useState(false);
  return (
    <Panel title="Needs attention" flush>
      {needs.length === 0 ? (
        <p className="flex items-center gap-2.5 px-4 py-4 text-sm">
          <ShieldCheck aria-hidden="true" className="size-5 text-good" strokeWidth={1.6} />
          Nothing needs attention.
        </p>
      ) : (
        <ul className="divide-y">
          {needs.map(({ id, tone, count, title, action, to, search, repairs, isApproval }) => (
            <li key={id} className="relative flex min-h-11 items-center gap-3 px-4 py-2 text-sm hover:bg-hover">
              <Dot tone={tone} />
              {/* The link covers the row. The button is above it. */}
              <Link
                to={to as '/'}
                {...(search === undefined ? {} : { search: search as never })}
                className="min-w-0 flex-1 font-medium text-accent before:absolute before:inset-0 hover:underline"
              >
                {title}
                <span className="sr-only"> {action}</span>
              </Link>
              {repairs !== undefined && (
                <span className="relative -my-1.5 shrink-0">
                  <Button small onClick={() => setRepairing({ reason: repairs, count })}>
                    Apply…<span className="sr-only"> {title}</span>
                  </Button>
                </span>
              )}
              {isApproval && (
                <span className="relative -my-1.5 shrink-0">
                  <Button small onClick={() => setApproving(true)}>
                    Approve…<span className="sr-only"> {title}</span>
                  </Button>
                </span>
              )}
              {/* On a phone, a button leaves no room for the words. */}
              <span
                aria-hidden="true"
                className={classNames(
                  'shrink-0 text-muted text-xs',
                  (repairs !== undefined || isApproval) && 'max-sm:hidden',
                )}
              >
                {action}
              </span>
              <ArrowRight aria-hidden="true" className="size-4 shrink-0 text-muted" />
            </li>
          ))}
        </ul>
      )}
      {repairing !== null && (
        <Suspense>
          <RepairAllDialog {...repairing} onClose={() => setRepairing(null)} />
        </Suspense>
      )}
      {isApproving && (
        <Suspense>
          <ApprovePending onClose={() => setApproving(false)} />
        </Suspense>
      )}
    </Panel>
  );
}
