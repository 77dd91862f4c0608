import type { DriftRecord } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useAgentName } from '../../api/agents.ts';
import { driftRecordQuery } from '../../api/drift.ts';
import { Badge } from '../../parts/badge.tsx';
import { Id } from '../../parts/copy.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Panel } from '../../parts/panel.tsx';
import { ResourceResults } from '../../parts/resource/resource-results.tsx';
import { Empty } from '../../parts/states.tsx';
import { SummaryLine } from '../../parts/summary.tsx';
import { Elapsed, Time } from '../../parts/time.tsx';
import { ItemPage, LoadedItem, ReportSkeleton } from '../item-page.tsx';
import { AgentLink, agentWords, OperationLink } from '../links.tsx';
import { DriftActions } from './drift-actions.tsx';
import { DriftNotices } from './drift-notices.tsx';
import { DriftStatus, triggerWords } from './drift-status.tsx';
import { useDriftHistory } from './use-drift-history.ts';

export function DriftRecordPage() {
  const { record: id } = useParams({ strict: false }) as { record: string };
  const query = useQuery(driftRecordQuery(id));
  return (
    <LoadedItem of="check" title="Drift" query={query} skeleton={<ReportSkeleton />}>
      {(record) => <DriftDetails key={id} record={record} />}
    </LoadedItem>
  );
}

function DriftDetails({ record }: { readonly record: DriftRecord }) {
  const { node_id, status, accepted } = record;
  const { newer, since } = useDriftHistory(record);
  const agentName = useAgentName(node_id);
  return (
    <ItemPage
      of="check"
      name={`Drift of ${agentWords(agentName)}`}
      under={[<AgentLink key="agent" id={node_id} />]}
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
      actions={<DriftActions record={record} />}
      banner={<DriftNotices record={record} newer={newer} />}
    >
      <div className="space-y-4">
        <CheckFacts record={record} since={since} />
        <section aria-labelledby="resources">
          <h2 id="resources" className="sr-only">
            Drifted resources
          </h2>
          <ResourceResults
            results={record.resources}
            resultKind="drift"
            empty={
              <div className="rounded-lg border bg-surface">
                <Empty title={status === 'in_sync' ? 'No drift' : 'Nothing was compared'}>
                  {status === 'in_sync' ? 'No resource has drifted.' : 'Check now to compare the machine.'}
                </Empty>
              </div>
            }
          />
        </section>
      </div>
    </ItemPage>
  );
}

function CheckFacts({
  record: { status, summary, checked_at, trigger, snapshot_operation_id, drift_id },
  since,
}: {
  readonly record: DriftRecord;
  readonly since: ReturnType<typeof useDriftHistory>['since'];
}) {
  return (
    <Panel>
      <Facts
        facts={[
          ['Result', <SummaryLine key="s" wrap summary={summary} resultKind="drift" />],
          status === 'drifted' && since !== null
            ? [
                'Drifted for',
                <span key="d">
                  {since.atLeast && 'at least '}
                  <Elapsed at={since.at} />
                </span>,
              ]
            : null,
          ['Checked', <Time key="c" at={checked_at} />],
          ['Trigger', triggerWords[trigger]],
          snapshot_operation_id === ''
            ? null
            : [
                'Compared with',
                <OperationLink key="o" id={snapshot_operation_id}>
                  the last apply
                </OperationLink>,
              ],
          ['Check', <Id key="i" id={drift_id} />],
        ]}
      />
    </Panel>
  );
}
