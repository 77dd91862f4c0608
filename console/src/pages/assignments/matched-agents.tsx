import type { Agent } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { linkClasses } from '../../parts/class-names.ts';
import { countedText, countText } from '../../parts/count.ts';
import { AgentLink } from '../links.tsx';
import { FindingLabel } from '../reconcile/sync-labels.tsx';
import type { MatchedAgent } from './matched-states.ts';

const maxAgents = 8;

/**
 * Lists the first matching agents with their sync states.
 * @param selector selects all of them in the linked list; omitted in a form, where a link would leave the form
 */
export function MatchedAgents({
  agents,
  selector,
}: {
  readonly agents: readonly MatchedAgent[];
  readonly selector?: string;
}) {
  return (
    <div className="space-y-2">
      <ul className="divide-y border-y" aria-label="Matching agents">
        {agents.slice(0, maxAgents).map(({ agent, finding }) => (
          <li key={agent.node_id} className="flex min-h-9 items-center gap-3 text-sm max-sm:min-h-11">
            <span className="flex min-w-0 flex-1 font-medium">
              <AgentLink id={agent.node_id} name={agent.name} />
            </span>
            {!agent.connected && <span className="text-muted text-xs">offline</span>}
            {finding !== null && <FindingLabel finding={finding} />}
          </li>
        ))}
      </ul>
      {agents.length > maxAgents &&
        (selector === undefined ? (
          <p className="text-muted text-xs">and {countText(agents.length - maxAgents)} more</p>
        ) : (
          <Link to="/agents" search={{ q: selector } as never} className={`${linkClasses} text-sm`}>
            All {countText(agents.length)} in Agents
          </Link>
        ))}
    </div>
  );
}

/** Summarizes agents, for example `12 agents, 3 offline`. */
export function matchText(agents: readonly Agent[]): string {
  if (agents.length === 0) return 'no agent';
  const offline = agents.filter(({ connected }) => !connected).length;
  const count = countedText(agents.length, 'agent');
  return offline === 0 ? count : `${count}, ${countText(offline)} offline`;
}
