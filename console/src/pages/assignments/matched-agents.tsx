import type { Agent } from '@muster/protocol/http';
import { useState } from 'react';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { AgentLink } from '../links.tsx';

const initialCount = 24;

/** Lists the first matching agents, with a button that shows more. */
export function MatchedAgents({ agents }: { readonly agents: readonly Agent[] }) {
  const [shown, setShown] = useState(initialCount);
  return (
    <div>
      <ul className="flex flex-wrap gap-1.5" aria-label="Matching agents">
        {agents.slice(0, shown).map(({ node_id, name, connected }) => (
          <li key={node_id} className="inline-flex max-w-60 items-center gap-1.5 rounded border px-1.5 py-0.5 text-xs">
            <Dot tone={connected ? 'good' : 'neutral'} />
            <AgentLink id={node_id} name={name} />
            {!connected && <span className="sr-only">offline</span>}
          </li>
        ))}
      </ul>
      {agents.length > shown && (
        <Button small className="mt-2" onClick={() => setShown(shown + 200)}>
          {agents.length - shown > 200 ? 'Show 200 more' : `Show the other ${agents.length - shown}`}
        </Button>
      )}
    </div>
  );
}

/** Summarizes agents, for example `12 agents, 3 offline`. */
export function matchText(agents: readonly Agent[]): string {
  if (agents.length === 0) return 'no agent';
  const offline = agents.filter(({ connected }) => !connected).length;
  const count = agents.length === 1 ? '1 agent' : `${agents.length} agents`;
  return offline === 0 ? count : `${count}, ${offline} offline`;
}
