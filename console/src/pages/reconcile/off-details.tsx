import type { OffAgent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { operationErrorText } from '../../../../client/src/operation-error.ts';
import { outdatedText } from '../../../../client/src/reason-words.ts';
import { statusText } from '../../../../client/src/status-text.ts';
import { driftRecordQuery } from '../../api/drift.ts';
import { operationQuery } from '../../api/operations.ts';
import { stateQuery } from '../../api/state.ts';
import { Button } from '../../parts/button.tsx';
import { anchorText } from '../../parts/resource/anchor.ts';
import { hasFailed } from '../../parts/resource/resource-groups.ts';
import { ResultList } from '../../parts/resource/resource-results.tsx';
import { Failure, Skeleton } from '../../parts/states.tsx';
import { Line, PathText, Text } from '../../parts/text.tsx';
import { Elapsed, Time } from '../../parts/time.tsx';
import { AssignmentLink, ModuleLinks, OperationLink, OperatorName, RunLink } from '../links.tsx';

/** Shows why an agent is out of sync. The reasons are loaded when the row opens. */
export function OffDetails({
  agent,
  onWithdraw,
}: {
  readonly agent: OffAgent;
  readonly onWithdraw: (driftId: string) => void;
}) {
  const { drift, failed_check, failed_operation, unapplied, pending_removals, node_id, outdated } = agent;
  return (
    <div className="space-y-6">
      {drift.map((entry) => (
        <section key={entry.drift_id} className="space-y-2">
          <h3 className="flex flex-wrap items-center gap-x-1.5 text-sm">
            {entry.assignment === null ? (
              'Drifted from its last apply'
            ) : (
              <>
                Differs from the audit assignment <AssignmentLink name={entry.assignment} />
              </>
            )}
            <span className="text-muted">
              for <Elapsed at={entry.since} /> · checked <Time at={entry.checked_at} />
            </span>
          </h3>
          {entry.accepted !== null && (
            <div className="flex flex-wrap items-center gap-x-2 rounded-md bg-raised px-3 py-1.5 text-sm">
              <span className="min-w-0 flex-1">
                Accepted by <OperatorName id={entry.accepted.by} />: <Text text={entry.accepted.reason} />
              </span>
              <Button small look="quiet" onClick={() => onWithdraw(entry.drift_id)}>
                Withdraw
              </Button>
            </div>
          )}
          <DriftDiff driftId={entry.drift_id} />
        </section>
      ))}
      {failed_operation !== null && (
        <section className="space-y-2">
          <h3 className="flex flex-wrap items-center gap-x-1.5 text-sm">
            Latest apply{' '}
            <OperationLink id={failed_operation.operation_id}>{statusText(failed_operation.status)}</OperationLink>
            <span className="text-muted">
              <Time at={failed_operation.finished_at} />
            </span>
            {failed_operation.run_id !== null && (
              <span className="text-muted">
                in a <RunLink id={failed_operation.run_id}>run</RunLink>
              </span>
            )}
          </h3>
          <FailedResources operationId={failed_operation.operation_id} />
        </section>
      )}
      {failed_check !== null && (
        <section className="space-y-1 text-sm">
          <h3>
            Latest check failed <Time at={failed_check.checked_at} />
          </h3>
          {failed_check.error !== null && (
            <p className="rounded-md bg-bad-soft px-2.5 py-1.5 text-bad">
              <Text text={failed_check.error} maxLength={600} />
            </p>
          )}
        </section>
      )}
      {(unapplied > 0 || pending_removals > 0) && <Unfinished nodeId={node_id} />}
      {outdated !== undefined && <OutdatedModules outdated={outdated} />}
    </div>
  );
}

function OutdatedModules({ outdated }: { readonly outdated: NonNullable<OffAgent['outdated']> }) {
  const { modules, examples } = outdated;
  return (
    <section className="space-y-1">
      <h3 className="text-sm">{outdatedText(outdated)}</h3>
      <ul className="divide-y rounded-md border text-sm">
        {examples.map(({ module, revision, newest }) => (
          <li key={module} className="flex flex-wrap items-center gap-x-2 px-3 py-1.5">
            <ModuleLinks modules={[module]} />
            <span className="text-muted text-xs">
              revision {revision} applied, newest {newest}
            </span>
          </li>
        ))}
        {modules > examples.length && (
          <li className="px-3 py-1.5 text-muted text-xs">and {modules - examples.length} more</li>
        )}
      </ul>
    </section>
  );
}

function DriftDiff({ driftId }: { readonly driftId: string }) {
  const query = useQuery(driftRecordQuery(driftId));
  const navigate = useNavigate();
  if (query.isPending) return <Skeleton className="h-24 w-full rounded-md" />;
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return (
    <ResultList
      results={query.data.resources}
      resultKind="drift"
      onAnchor={(anchor) =>
        void navigate({ to: '/drift/$record', params: { record: driftId }, hash: anchorText(anchor) })
      }
    />
  );
}

function FailedResources({ operationId }: { readonly operationId: string }) {
  const query = useQuery(operationQuery(operationId));
  const navigate = useNavigate();
  if (query.isPending) return <Skeleton className="h-16 w-full rounded-md" />;
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const { resources, error } = query.data;
  const failed = resources.filter(hasFailed);
  return (
    <>
      {error !== null && failed.length === 0 && (
        <p className="rounded-md bg-bad-soft px-2.5 py-1.5 text-bad text-sm">
          <Text text={operationErrorText(error)} maxLength={600} />
        </p>
      )}
      <ResultList
        results={failed}
        resultKind="apply"
        onAnchor={(anchor) =>
          void navigate({ to: '/operations/$operation', params: { operation: operationId }, hash: anchorText(anchor) })
        }
      />
    </>
  );
}

const maxEntries = 20;

/** Resources that the last apply neither applied nor removed. */
function Unfinished({ nodeId }: { readonly nodeId: string }) {
  const query = useQuery(stateQuery(nodeId));
  if (query.isPending) return <Skeleton className="h-16 w-full rounded-md" />;
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const lists = [
    ['Not applied', query.data.unapplied],
    ['To be removed', query.data.pending_removals],
  ] as const;
  return lists
    .filter(([, entries]) => entries.length > 0)
    .map(([title, entries]) => (
      <section key={title} className="space-y-1">
        <h3 className="text-sm">{title}</h3>
        <ul className="divide-y rounded-md border text-sm">
          {entries.slice(0, maxEntries).map(({ module, type, identity, reason }) => (
            <li key={`${module}/${type}:${identity}`} className="flex flex-wrap items-center gap-x-2 px-3 py-1.5">
              <span className="flex min-w-0 text-muted text-xs">
                <Line text={type} maxLength={64} />
              </span>
              <span className="min-w-0 font-mono text-xs">
                <PathText text={identity} />
              </span>
              {reason !== null && (
                <span className="flex min-w-0 text-muted text-xs">
                  <Line text={reason} />
                </span>
              )}
            </li>
          ))}
          {entries.length > maxEntries && (
            <li className="px-3 py-1.5 text-muted text-xs">and {entries.length - maxEntries} more</li>
          )}
        </ul>
      </section>
    ));
}
