import type { Agent, State } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { stateQuery } from '../../api/state.ts';
import { Badge, type Tone } from '../../parts/badge.tsx';
import { Panel } from '../../parts/panel.tsx';
import { Loading, PanelSkeleton } from '../../parts/skeletons.tsx';
import { Empty, Failure } from '../../parts/states.tsx';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { ModuleLinks, OperationLink } from '../links.tsx';
import { type AppliedEntry, appliedByModule } from './applied-by-module.ts';

const looks: Record<AppliedEntry['standing'], { readonly text: string; readonly tone: Tone }> = {
  applied: { text: 'applied', tone: 'good' },
  unapplied: { text: 'not applied', tone: 'warn' },
  pending_removal: { text: 'to be removed', tone: 'info' },
};

export function StateTab({ agent }: { readonly agent: Agent }) {
  const { data, error, refetch } = useQuery(stateQuery(agent.node_id));
  if (data === undefined)
    return error === null ? (
      <Loading label="Loading">
        <PanelSkeleton rows={6} size="line" />
      </Loading>
    ) : (
      <Failure error={error} retry={() => void refetch()} />
    );
  const groups = appliedByModule(data);
  if (groups.length === 0)
    return <Empty title="No applied resources">Resources are listed here after the first apply.</Empty>;
  return (
    <div className="space-y-4">
      <Outline state={data} />
      {groups.map(({ module, entries }) => (
        <Panel
          key={module}
          flush
          title={<ModuleLinks modules={[module]} />}
          actions={<span className="tabular text-muted text-xs">{entries.length} resources</span>}
        >
          <ul aria-label={`Resources of ${module}`} className="divide-y">
            {entries.map((entry) => (
              <li
                key={`${entry.standing} ${entry.type} ${entry.identity}`}
                className="flex min-h-9 flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-1 text-sm [content-visibility:auto]"
              >
                <span className="flex w-32 shrink-0 text-muted text-xs max-sm:w-auto">
                  <Line text={entry.type} maxLength={64} />
                </span>
                <span className="flex min-w-0 flex-1 font-mono text-xs">
                  <Line text={entry.identity} maxLength={200} />
                </span>
                {entry.reason !== null && (
                  <span className="flex min-w-0 max-w-80 text-muted text-xs">
                    <Line text={entry.reason} />
                  </span>
                )}
                {entry.standing !== 'applied' && (
                  <Badge tone={looks[entry.standing].tone}>{looks[entry.standing].text}</Badge>
                )}
                <span className="w-20 shrink-0 text-right text-muted text-xs">
                  <Time at={entry.since} />
                </span>
                <span className="max-md:hidden">
                  <OperationLink id={entry.operation_id} />
                </span>
              </li>
            ))}
          </ul>
        </Panel>
      ))}
    </div>
  );
}

function Outline({ state }: { readonly state: State }) {
  const { applied, unapplied, pending_removals, snapshot_operation_id } = state;
  return (
    <p className="text-muted text-sm">
      <span className="tabular">
        {applied.length} applied
        {unapplied.length > 0 && <span className="text-warn"> · {unapplied.length} not applied</span>}
        {pending_removals.length > 0 && <span className="text-info"> · {pending_removals.length} to be removed</span>}
      </span>
      {snapshot_operation_id !== null && (
        <>
          . Drift is compared with{' '}
          <span className="inline-block">
            <OperationLink id={snapshot_operation_id}>the last successful apply</OperationLink>.
          </span>
        </>
      )}
    </p>
  );
}
