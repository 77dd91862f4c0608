import type { Agent, Assignment, OffAgent, OperationEntry } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { operationErrorText } from '../../../../../client/src/operation-error.ts';
import { assignmentsQuery } from '../../../api/assignments.ts';
import { latestCheckQuery } from '../../../api/drift.ts';
import { modulesQuery } from '../../../api/modules/modules.ts';
import { lastApplyQuery } from '../../../api/operations.ts';
import { windowsQuery } from '../../../api/windows.ts';
import { Badge, Dot } from '../../../parts/badge.tsx';
import { linkClasses } from '../../../parts/class-names.ts';
import { countedText } from '../../../parts/count.ts';
import { Panel } from '../../../parts/panel.tsx';
import { Failure, SkeletonRows } from '../../../parts/states.tsx';
import { SummaryLine } from '../../../parts/summary.tsx';
import { Text } from '../../../parts/text.tsx';
import { Time, useNow } from '../../../parts/time.tsx';
import { StatusDot } from '../../../parts/work-status.tsx';
import { CheckNow } from '../../drift/check-now.tsx';
import { AssignmentLink, ModuleLinks, OperationLink } from '../../links.tsx';
import { FindingLabel } from '../../reconcile/sync-labels.tsx';
import { syncTones } from '../../reconcile/sync-tones.ts';
import { displayName } from '../agent-state.ts';
import { assignmentsOf, modulesOf, modulesSince, nextWindow } from './assigned.ts';

/** The modules that the agent should run, whether it runs them, and its last apply. */
export function DesiredState({
  agent,
  off,
}: {
  readonly agent: Agent;
  /** Undefined while loading; null if the agent is in sync. */
  readonly off: OffAgent | null | undefined;
}) {
  const assignments = useQuery(assignmentsQuery);
  const lastApply = useQuery(lastApplyQuery(agent.node_id));
  const succeeded = useQuery(lastApplyQuery(agent.node_id, 'succeeded'));
  const { data: stored } = useQuery(modulesQuery);
  const { data: windows } = useQuery(windowsQuery);
  const now = useNow() / 1000;
  const error = assignments.error ?? lastApply.error ?? succeeded.error;
  if (error !== null)
    return (
      <Panel title="Desired state">
        <Failure
          error={error}
          retry={() => {
            void assignments.refetch();
            void lastApply.refetch();
            void succeeded.refetch();
          }}
        />
      </Panel>
    );
  if (
    assignments.data === undefined ||
    lastApply.data === undefined ||
    succeeded.data === undefined ||
    off === undefined
  )
    return (
      <Panel title="Desired state" flush>
        <SkeletonRows rows={4} size="line" label="Loading the desired state" />
      </Panel>
    );
  const given = assignmentsOf(agent, assignments.data);
  const modules = modulesOf(given);
  const since = succeeded.data === null ? [] : modulesSince(succeeded.data, modules, stored ?? []);
  const window = windows === undefined ? null : nextWindow(agent, windows, now);
  return (
    <Panel
      title="Desired state"
      flush
      actions={<LatestCheck agent={agent} canCheck={agent.connected && succeeded.data !== null} />}
    >
      <dl className="divide-y">
        <Row name="Status">
          <SyncStatus {...{ off, modules, since }} isApplied={succeeded.data !== null} />
        </Row>
        <Row name="Assignments">
          {given.length === 0 ? (
            <span className="text-muted">None matches the tags and attributes of this agent</span>
          ) : (
            given.map((assignment) => <AssignmentEntry key={assignment.name} assignment={assignment} />)
          )}
        </Row>
        {modules.length > 0 && (
          <Row name="Modules, in order">
            <ModuleLinks modules={modules} />
          </Row>
        )}
        <Row name="Last apply">
          <LastApply operation={lastApply.data} />
        </Row>
        {(window !== null || given.some(({ window_only }) => window_only)) && (
          <Row name="Maintenance window">
            {window === null ? (
              <span className="text-warn">None is planned. Assignments with “windows only” are not applied.</span>
            ) : (
              <>
                <span>
                  {window.starts_at <= now ? 'open, ends ' : 'next begins '}
                  <Time at={window.starts_at <= now ? window.ends_at : window.starts_at} />
                </span>
                <span className="text-muted">
                  <Text text={window.reason} maxLength={100} />
                </span>
              </>
            )}
          </Row>
        )}
      </dl>
    </Panel>
  );
}

/** When the agent was last checked for drift, and a button that checks it now. */
function LatestCheck({ agent, canCheck }: { readonly agent: Agent; readonly canCheck: boolean }) {
  const { data: check } = useQuery(latestCheckQuery(agent.node_id));
  return (
    <>
      {check && (
        <span className="text-muted text-xs">
          <Link to="/drift/$record" params={{ record: check.drift_id }} className={linkClasses}>
            checked
          </Link>{' '}
          <Time at={check.checked_at} />
        </span>
      )}
      {canCheck && <CheckNow node_id={agent.node_id} name={displayName(agent)} />}
    </>
  );
}

function Row({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="grid gap-x-4 gap-y-0.5 px-4 py-2 text-sm sm:grid-cols-[9rem_minmax(0,1fr)]">
      <dt className="text-muted">{name}</dt>
      <dd className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">{children}</dd>
    </div>
  );
}

function AssignmentEntry({ assignment: { name, mode, window_only } }: { readonly assignment: Assignment }) {
  return (
    <span className="inline-flex min-w-0 items-center gap-1.5">
      <AssignmentLink name={name} />
      {mode === 'audit' && <Badge>audit</Badge>}
      {window_only && <Badge>windows only</Badge>}
    </span>
  );
}

function SyncStatus({
  off,
  modules,
  since,
  isApplied,
}: {
  readonly off: OffAgent | null;
  readonly modules: readonly string[];
  /** Modules that the last successful apply did not include. */
  readonly since: readonly string[];
  readonly isApplied: boolean;
}) {
  const state = syncStateOf(off, isApplied);
  // The callout above explains why.
  if (state === 'out_of_sync' || state === 'outdated') return <FindingLabel finding={state} />;
  if (state === 'never_applied')
    return (
      <>
        <FindingLabel finding={state} />
        {modules.length === 0 && <span className="text-muted">nothing is assigned</span>}
      </>
    );
  return (
    <>
      <Dot tone={syncTones.in_sync}>
        in sync{since.length > 0 && ' with the last apply'}
        {state !== 'in_sync' && ', with accepted drift'}
      </Dot>
      {since.length > 0 && (
        <span className="text-warn">{countedText(since.length, 'module')} changed or assigned since then</span>
      )}
    </>
  );
}

function LastApply({ operation }: { readonly operation: OperationEntry | null }) {
  if (operation === null) return <span className="text-muted">never</span>;
  const { operation_id, status, summary, error, created_at } = operation;
  return (
    <>
      <OperationLink id={operation_id}>
        <StatusDot status={status} />
      </OperationLink>
      {error !== null && summary.total === 0 ? (
        <span className="text-bad">
          <Text text={operationErrorText(error)} maxLength={200} />
        </span>
      ) : (
        <SummaryLine wrap summary={summary} resultKind="apply" />
      )}
      <span className="text-muted text-xs">
        <Time at={created_at} />
      </span>
    </>
  );
}
