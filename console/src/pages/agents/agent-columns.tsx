import type { Sample } from '@muster/protocol';
import type { Agent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { findingsOf, reasonWords } from '../../../../client/src/reason-words.ts';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { nameLinkClasses } from '../../parts/class-names.ts';
import { Meter } from '../../parts/meter.tsx';
import type { Column } from '../../parts/table/data-table.tsx';
import { Tags } from '../../parts/tag-chip.tsx';
import { Line, visibleText } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { agentSync, type FleetSync } from '../reconcile/agent-sync.ts';
import { FindingLabel } from '../reconcile/sync-labels.tsx';
import { syncWords } from '../reconcile/sync-tones.ts';
import { agentParam, displayName, stateOf, stateSince, systemText, tones } from './agent-state.ts';
import { type RowDialog, RowMenu } from './row-menu.tsx';

/** Sort order of states, most urgent first. */
const order = { pending: 0, offline: 1, connected: 2, rejected: 3 } as const;

const share = (used: number | null | undefined, total: number | null | undefined): number | null =>
  used === null || used === undefined || !total ? null : used / total;

/** Columns that need only the agent record. */
const recordColumns: Record<
  'agent' | 'state' | 'tags' | 'system' | 'hostname' | 'ip' | 'version' | 'seen',
  Column<Agent>
> = {
  agent: {
    id: 'agent',
    header: 'Agent',
    width: 'minmax(8rem,4fr)',
    sort: displayName,
    cell: (agent) => (
      <Link to="/agents/$agent" params={{ agent: agentParam(agent) }} tabIndex={-1} className={nameLinkClasses}>
        <span className={agent.name === null ? 'flex min-w-0 font-normal italic' : 'flex min-w-0'}>
          <Line text={displayName(agent)} maxLength={64} />
        </span>
      </Link>
    ),
  },
  state: {
    id: 'state',
    header: 'Status',
    width: '8.25rem',
    sort: (agent) => order[stateOf(agent)] * 1e12 - stateSince(agent),
    // Shows a time only for states other than connected, because a link's age does not indicate the last contact.
    cell: (agent) => (
      <span className="flex min-w-0 items-baseline gap-1.5">
        <Dot tone={tones[stateOf(agent)]}>{stateOf(agent)}</Dot>
        {!agent.connected && (
          <span className="text-muted text-xs">
            <Time at={stateSince(agent)} />
          </span>
        )}
      </span>
    ),
  },
  tags: {
    id: 'tags',
    header: 'Tags',
    width: 'minmax(9.5rem,4fr)',
    from: 'md',
    phone: 'block',
    cell: ({ tags }) => <Tags tags={tags} />,
  },
  system: {
    id: 'system',
    header: 'System',
    width: 'minmax(7rem,1fr)',
    from: 'lg',
    sort: (agent) => systemText(agent).slice(0, 100) || null,
    cell: (agent) => <Line text={systemText(agent)} maxLength={60} />,
  },
  hostname: {
    id: 'hostname',
    header: 'Hostname',
    width: 'minmax(8rem,1.5fr)',
    from: 'lg',
    sort: ({ initial_hostname }) => initial_hostname.slice(0, 100),
    cell: ({ initial_hostname }) => (
      <span className="flex min-w-0 text-muted">
        <Line text={initial_hostname} maxLength={100} />
      </span>
    ),
  },
  ip: {
    id: 'ip',
    header: 'Address',
    width: '8rem',
    from: '2xl',
    sort: ({ initial_ip }) => initial_ip,
    cell: ({ initial_ip }) => (
      <code className="truncate font-mono text-muted text-xs" title={visibleText(initial_ip)}>
        {visibleText(initial_ip)}
      </code>
    ),
  },
  version: {
    id: 'version',
    header: 'Version',
    width: '5.5rem',
    from: '2xl',
    sort: ({ agent_version }) => agent_version.slice(0, 40),
    cell: ({ agent_version }) => (
      <span className="tabular flex min-w-0 text-muted">
        <Line text={agent_version} maxLength={40} />
      </span>
    ),
  },
  seen: {
    id: 'seen',
    header: 'Last seen',
    width: '6rem',
    from: '2xl',
    phone: 'top',
    align: 'right',
    sort: ({ connected, last_seen_at }) => (connected ? Number.MAX_SAFE_INTEGER : last_seen_at),
    cell: ({ connected, last_seen_at }) => (
      <span className="text-muted">{connected ? 'now' : <Time at={last_seen_at} />}</span>
    ),
  },
};

/** On a phone, the first line of an offline agent's row ends with the time of the last contact, so the state needs none. */
const phoneColumns: Pick<typeof recordColumns, 'state' | 'seen'> = {
  state: { ...recordColumns.state, cell: (agent) => <Dot tone={tones[stateOf(agent)]}>{stateOf(agent)}</Dot> },
  seen: {
    ...recordColumns.seen,
    cell: ({ connected, last_seen_at }) =>
      connected ? null : (
        <span className="text-muted">
          seen <Time at={last_seen_at} />
        </span>
      ),
  },
};

const findingsIn = (sync: FleetSync | null, { node_id }: Agent) => {
  const found = sync?.off.get(node_id);
  return found === undefined ? [] : findingsOf(found);
};

/** Sort order of sync states, most urgent first. */
const syncOrder = { out_of_sync: 0, outdated: 1, never_applied: 2, accepted: 3, in_sync: 4 } as const;

/**
 * A column with an agent's sync state, or with its first finding and the number of other findings.
 * @param approve called by the button of a pending agent, which has no sync state; null if the button is elsewhere
 */
const syncColumn = (sync: FleetSync | null, approve: ((agent: Agent) => void) | null): Column<Agent> => ({
  id: 'off',
  header: 'Sync',
  width: '8.25rem',
  from: 'sm',
  phone: 'line',
  sort: (agent) => {
    const state = agentSync(agent, sync);
    return state === null ? null : syncOrder[state] * 100 - findingsIn(sync, agent).length;
  },
  cell: (agent) => {
    if (agent.status === 'pending' && approve !== null)
      return (
        <Button small onClick={() => approve(agent)}>
          Approve…
        </Button>
      );
    const [first, ...others] = findingsIn(sync, agent);
    const state = agentSync(agent, sync);
    // On a phone, no column would be empty.
    if (state === null) return approve === null ? null : <span className="text-muted">–</span>;
    // The orchestrator does not know the current state of an agent that is offline.
    if (first === undefined && state === 'in_sync' && !agent.connected)
      return (
        <span className="flex min-w-0" title="when last seen">
          <Dot tone="neutral">{syncWords.in_sync}</Dot>
        </span>
      );
    if (first === undefined) return <FindingLabel finding={state} />;
    return (
      <span
        className="flex min-w-0 items-center gap-1"
        title={[first, ...others].map((each) => reasonWords[each]).join(', ')}
      >
        <FindingLabel finding={first} />
        {others.length > 0 && <span className="text-muted text-xs">+{others.length}</span>}
      </span>
    );
  },
});

export function agentColumns({
  samples,
  sync,
  isPhone,
  onDialog,
}: {
  readonly samples: Readonly<Record<string, Sample>>;
  /** Null while loading. */
  readonly sync: FleetSync | null;
  readonly isPhone: boolean;
  readonly onDialog: (dialog: RowDialog, agent: Agent) => void;
}): readonly Column<Agent>[] {
  /** Returns the newest sample of a connected agent. That of an offline agent does not show the current usage. */
  const sampleOf = ({ node_id, connected }: Agent) => (connected ? samples[node_id] : undefined);
  const cpu = (agent: Agent) => share(sampleOf(agent)?.cpu_usage, 100);
  const memory = (agent: Agent) => share(sampleOf(agent)?.memory_used, sampleOf(agent)?.memory_total);
  const { agent, tags, system, hostname, ip, version } = recordColumns;
  const { state, seen } = isPhone ? phoneColumns : recordColumns;
  return [
    ...[
      agent,
      state,
      syncColumn(sync, isPhone ? null : (agent) => onDialog('approve', agent)),
      tags,
      system,
      hostname,
      ip,
      version,
    ],
    { id: 'cpu', header: 'CPU', width: '5.5rem', from: 'lg', sort: cpu, cell: (agent) => <Meter share={cpu(agent)} /> },
    {
      id: 'memory',
      header: 'Memory',
      width: '5.5rem',
      from: 'lg',
      sort: memory,
      cell: (agent) => <Meter share={memory(agent)} />,
    },
    seen,
    {
      ...{
        id: 'actions',
        header: 'Actions',
        width: '4.5rem',
        from: 'sm',
        phone: 'end',
        align: 'right',
      },
      cell: (agent) => (
        <span className="flex items-center gap-1">
          {isPhone && agent.status === 'pending' && (
            <Button small onClick={() => onDialog('approve', agent)}>
              Approve…
            </Button>
          )}
          <RowMenu agent={agent} onDialog={onDialog} />
        </span>
      ),
    },
  ];
}
