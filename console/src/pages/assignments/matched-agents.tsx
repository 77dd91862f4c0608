import type { Agent } from '@muster/protocol/http';
import type { SyncState } from '@muster/protocol/sync-state';
import { useState } from 'react';
import { Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { AgentLink } from '../links.tsx';
import { syncTones, syncWords } from '../reconcile/sync-tones.ts';

const initialCount = 24;

/**
 * Lists the first matching agents, with a button that shows more. Their dots show the sync states, if they are given, and
 * otherwise which agents are connected.
 */
export function MatchedAgents({
  agents,
  states,
}: {
  readonly agents: readonly Agent[];
  /** Sync states by node id. */
  readonly states?: ReadonlyMap<string, SyncState>;
}) {
  const [shown, setShown] = useState(initialCount);
  return (
    <div>
      <ul className="flex flex-wrap gap-1.5" aria-label="Matching agents">
        {agents.slice(0, shown).map(({ node_id, name, connected }) => (
          <li key={node_id} className="inline-flex max-w-60 items-center gap-1.5 rounded border px-1.5 py-0.5 text-xs">
            <AgentDot state={states?.get(node_id)} isConnected={connected} />
            <AgentLink id={node_id} name={name} />
            {!connected && <span className={states === undefined ? 'sr-only' : 'text-muted'}>offline</span>}
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

function AgentDot({ state, isConnected }: { readonly state: SyncState | undefined; readonly isConnected: boolean }) {
  if (state === undefined) return <Dot tone={isConnected ? 'good' : 'neutral'} />;
  return (
    <span className="inline-flex" title={syncWords[state]}>
      <Dot tone={syncTones[state]} />
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
