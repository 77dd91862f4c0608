import type { Agent } from '@muster/protocol/http';
import { useState } from 'react';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { AgentLink } from '../links.tsx';
import { syncWords } from '../reconcile/sync-tones.ts';
import type { MatchedAgent } from './matched-states.ts';

const initialCount = 24;

/** Lists the first matching agents with their sync states, and a button that shows more. */
export function MatchedAgents({ agents }: { readonly agents: readonly MatchedAgent[] }) {
  const [shown, setShown] = useState(initialCount);
  return (
    <div>
      <ul className="flex flex-wrap gap-1.5" aria-label="Matching agents">
        {agents.slice(0, shown).map(({ agent, state, tone }) => (
          <li
            key={agent.node_id}
            className="inline-flex max-w-60 items-center gap-1.5 rounded border px-1.5 py-0.5 text-xs"
          >
            <SyncDot state={state} tone={tone} />
            <AgentLink id={agent.node_id} name={agent.name} />
            {!agent.connected && <span className="text-muted">offline</span>}
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

function SyncDot({ state, tone }: Pick<MatchedAgent, 'state' | 'tone'>) {
  if (state === null) return <Dot tone={tone} />;
  return (
    <span className="inline-flex" title={syncWords[state]}>
      <Dot tone={tone} />
      <span className="sr-only">{syncWords[state]}</span>
    </span>
  );
}

/** Summarizes agents, for example `12 agents, 3 offline`. */
export function matchText(agents: readonly Agent[]): string {
  if (agents.length === 0) return 'no agent';
  const offline = agents.filter(({ connected }) => !connected).length;
  const count = agents.length === 1 ? '1 agent' : `${agents.length} agents`;
  return offline === 0 ? count : `${count}, ${offline} offline`;
}
