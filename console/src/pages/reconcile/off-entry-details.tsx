import type { OffAgent } from '@muster/protocol/http';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { AgentLink } from '../links.tsx';
import type { OffGroup } from './off.ts';
import { firstOf } from './off-columns.tsx';
import { OffDetails } from './off-details.tsx';

/** The part of an open row: links to the agents, and the reasons why the first agent is out of sync. */
export function OffEntryDetails({
  group,
  onWithdraw,
}: {
  readonly group: OffGroup;
  readonly onWithdraw: (driftId: string) => void;
}) {
  const first = firstOf(group);
  return (
    <div className="space-y-3 sm:pl-8">
      {group.agents.length === 1 ? (
        <p className="flex flex-wrap gap-x-1.5 text-muted text-sm">
          Agent <AgentLink id={first.node_id} name={first.name} />
          {!first.connected && (
            <span>
              offline, last seen <Time at={first.last_seen_at} />
            </span>
          )}
        </p>
      ) : (
        <Members agents={group.agents} />
      )}
      <OffDetails agent={first} onWithdraw={onWithdraw} />
    </div>
  );
}

const maxNames = 200;

function Members({ agents }: { readonly agents: readonly OffAgent[] }) {
  const [first] = agents as [OffAgent, ...OffAgent[]];
  return (
    <div className="space-y-2">
      <ul className="flex max-h-48 flex-wrap gap-1 overflow-y-auto" aria-label="Agents">
        {agents.slice(0, maxNames).map(({ node_id, name }) => (
          <li key={node_id} className="inline-flex max-w-60 rounded bg-raised px-1.5 text-xs">
            <AgentLink id={node_id} name={name} />
          </li>
        ))}
        {agents.length > maxNames && <li className="text-muted text-xs">and {agents.length - maxNames} more</li>}
      </ul>
      <p className="text-muted text-xs">
        These agents have the same first issues, and the same number of them. Shown:{' '}
        <Line text={first.name ?? first.node_id} maxLength={64} />.
      </p>
    </div>
  );
}
