import type { DriftRecord } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Check, RefreshCw, Wrench } from 'lucide-react';
import { useState } from 'react';
import { agentDriftQuery, checkNow, driftRecordQuery } from '../../api/drift.ts';
import { operationQuery, startApply } from '../../api/operations.ts';
import { queryClient } from '../../api/query-client.ts';
import { loadUnassignedModules } from '../../api/unassigned-modules.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Page } from '../../parts/page.tsx';
import { Panel } from '../../parts/panel.tsx';
import { ResourceResults } from '../../parts/resource/resource-results.tsx';
import { Empty, Failure, Problem, Skeleton, SkeletonRows } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { AgentLink, OperationLink, OperatorName } from '../links.tsx';
import { AcceptDialog, WithdrawDialog } from './acceptance-dialogs.tsx';
import { DriftStatus, triggerWords } from './drift-status.tsx';
import { driftedSince } from './drifted-since.ts';

export function DriftRecordPage() {
  const { record: id } = useParams({ strict: false }) as { record: string };
  const query = useQuery(driftRecordQuery(id));
  if (query.isPending)
    return (
      <Page title="Drift">
        <Skeleton className="mb-4 h-24 w-full rounded-lg" />
        <SkeletonRows />
      </Page>
    );
  if (query.isError)
    return (
      <Page title="Drift">
        <Failure error={query.error} retry={() => void query.refetch()} title="This check could not be loaded" />
      </Page>
    );
  return <DriftDetails key={id} record={query.data} />;
}

function DriftDetails({ record }: { readonly record: DriftRecord }) {
  const { node_id, status, accepted, trigger, drift_id } = record;
  const { data: others } = useQuery(agentDriftQuery(node_id));
  // Checks of audit assignments form a separate history.
  const alike = others?.filter((other) => (other.trigger === 'audit') === (trigger === 'audit'));
  const newest = trigger === 'audit' ? undefined : alike?.[0];
  const since = alike === undefined ? null : driftedSince(record, alike);
  return (
    <Page
      name="Drift"
      title={
        <span className="flex min-w-0 items-center gap-2.5">
          <span className="flex min-w-0 gap-1.5">
            Drift of <AgentLink id={node_id} />
          </span>
          <Badge tone={status === 'drifted' && accepted === null ? 'warn' : status === 'failed' ? 'bad' : 'neutral'}>
            <DriftStatus record={record} />
          </Badge>
        </span>
      }
      actions={<Actions record={record} />}
    >
      <div className="space-y-4">
        {newest !== undefined && newest.drift_id !== drift_id && newest.checked_at >= record.checked_at && (
          <Callout
            tone="info"
            title="A newer check of this agent exists"
            action={
              <Link
                to="/drift/$record"
                params={{ record: newest.drift_id }}
                className="rounded text-accent text-sm hover:underline"
              >
                Show the latest
              </Link>
            }
          />
        )}
        {record.error !== null && (
          <Callout tone="bad" title="The check failed">
            <Text text={record.error} maxLength={600} />
          </Callout>
        )}
        {accepted !== null && (
          <Callout
            tone="neutral"
            title={
              <span className="inline-flex flex-wrap gap-x-1">
                Accepted by <OperatorName id={accepted.by} /> <Time at={accepted.at} />
              </span>
            }
          >
            <Text text={accepted.reason} maxLength={600} />
          </Callout>
        )}
        <Panel>
          <Facts
            facts={[
              ['Result', <SummaryLine key="s" wrap summary={record.summary} resultKind="drift" />],
              status === 'drifted' && since !== null
                ? [
                    'Drifted since',
                    <span key="d">
                      {since.atLeast && 'at least '}
                      <Time at={since.at} />
                    </span>,
                  ]
                : null,
              ['Checked', <Time key="c" at={record.checked_at} />],
              ['Trigger', triggerWords[trigger]],
              record.snapshot_operation_id === ''
                ? null
                : [
                    'Compared with',
                    <OperationLink key="o" id={record.snapshot_operation_id}>
                      the last apply
                    </OperationLink>,
                  ],
              ['Check', <Id key="i" id={drift_id} />],
            ]}
          />
        </Panel>
        <section aria-labelledby="resources">
          <h2 id="resources" className="sr-only">
            Deviating resources
          </h2>
          <ResourceResults
            results={record.resources}
            resultKind="drift"
            empty={
              <div className="rounded-lg border bg-surface">
                <Empty title={status === 'in_sync' ? 'No drift' : 'Nothing was compared'}>
                  {status === 'in_sync' ? 'No resource deviates.' : 'Check again to compare the machine.'}
                </Empty>
              </div>
            }
          />
        </section>
      </div>
    </Page>
  );
}

function Actions({ record }: { readonly record: DriftRecord }) {
  const { node_id, status, accepted, drift_id, trigger } = record;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<'repair' | 'accept' | 'withdraw' | null>(null);
  const check = useMutation({
    mutationFn: () => checkNow(node_id),
    onSuccess: (found) => void navigate({ to: '/drift/$record', params: { record: found.drift_id } }),
  });
  const drifted = status === 'drifted';
  return (
    <>
      <Button icon={<RefreshCw className="size-4" />} busy={check.isPending} onClick={() => check.mutate()}>
        Check again
      </Button>
      {drifted && accepted === null && (
        <Button icon={<Check className="size-4" />} onClick={() => setDialog('accept')}>
          Accept
        </Button>
      )}
      {drifted && accepted !== null && <Button onClick={() => setDialog('withdraw')}>Withdraw acceptance</Button>}
      {drifted && trigger !== 'audit' && (
        <Button look="primary" icon={<Wrench className="size-4" />} onClick={() => setDialog('repair')}>
          Repair
        </Button>
      )}
      {check.isError && (
        <div className="basis-full">
          <Problem error={check.error} />
        </div>
      )}
      {dialog === 'accept' && (
        <AcceptDialog driftIds={[drift_id]} resources={record.resources} onClose={() => setDialog(null)} />
      )}
      {dialog === 'withdraw' && <WithdrawDialog driftId={drift_id} onClose={() => setDialog(null)} />}
      <Confirm
        open={dialog === 'repair'}
        onOpenChange={(open) => !open && setDialog(null)}
        danger={false}
        title="Repair this drift?"
        action="Apply"
        onConfirm={async () => {
          const { modules } = await queryClient.fetchQuery(operationQuery(record.snapshot_operation_id));
          const beyond = await loadUnassignedModules([{ node_id, modules }]);
          const operation = await startApply({ node_id, modules: beyond.get(node_id) ?? [] });
          void navigate({ to: '/operations/$operation', params: { operation: operation.operation_id } });
        }}
      >
        This applies the current assignments of the agent: it repairs the deviations, and applies changes that its
        modules have had since.
      </Confirm>
    </>
  );
}
