import type { OffAgent } from '@muster/protocol/http';
import { Check, ChevronRight, Wrench } from 'lucide-react';
import { useState } from 'react';
import { reasonWords } from '../../../../client/src/reason-words.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { AgentLink } from '../links.tsx';
import { acceptable, canRepair, type OffGroup, reasonTones } from './off.ts';
import { OffDetails } from './off-details.tsx';

/**
 * A row for an agent that is out of sync, or for a group of agents with the same reasons. Expands to show the details.
 */
export function OffRow({
  group: { agents },
  chosen,
  onChoose,
  onRepair,
  onAccept,
  onWithdraw,
}: {
  readonly group: OffGroup;
  readonly chosen: boolean;
  readonly onChoose: (chosen: boolean) => void;
  readonly onRepair: () => void;
  readonly onAccept: () => void;
  readonly onWithdraw: (driftId: string) => void;
}) {
  const [open, setOpen] = useState(false);
  const [first] = agents as [OffAgent, ...OffAgent[]];
  const alone = agents.length === 1;
  const label = alone ? (first.name ?? first.node_id) : `${agents.length} agents`;
  const repairable = agents.some(canRepair);
  const canAccept = agents.some((agent) => acceptable(agent).length > 0);
  const since = first.drift.find(({ accepted }) => accepted === null)?.since ?? first.failed_operation?.finished_at;
  return (
    <li className={classNames(chosen && 'bg-accent-soft/40')}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 px-3 py-2">
        <input
          type="checkbox"
          aria-label={`Select ${label}`}
          className="size-4 shrink-0 accent-[var(--accent)]"
          checked={chosen}
          onChange={(event) => onChoose(event.target.checked)}
        />
        <h2 className="flex min-w-0 flex-1 basis-56">
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="flex min-w-0 flex-1 flex-wrap items-center gap-x-2.5 gap-y-1 rounded text-left text-sm"
          >
            <ChevronRight
              aria-hidden="true"
              className={classNames(
                'size-4 shrink-0 text-muted transition-transform duration-100',
                open && 'rotate-90',
              )}
            />
            <span className="flex min-w-0 font-medium">
              <Line text={label} maxLength={64} />
            </span>
            {alone && !first.connected && (
              <span className="text-muted text-xs">
                <Dot tone="neutral">
                  not connected since <Time at={first.last_seen_at} />
                </Dot>
              </span>
            )}
            <span className="flex flex-wrap gap-1">
              {first.reasons.length === 0 && <Badge>accepted</Badge>}
              {first.reasons.map((reason) => (
                <Badge key={reason} tone={reasonTones[reason]}>
                  {reasonWords[reason]}
                </Badge>
              ))}
            </span>
            <span className="min-w-0 text-muted text-xs">{factsOf(first)}</span>
            {since !== null && since !== undefined && (
              <span className="text-muted text-xs">
                <Time at={since} />
              </span>
            )}
          </button>
        </h2>
        <div className="ml-auto flex gap-1.5">
          {canAccept && (
            <Button small look="quiet" icon={<Check className="size-3.5" />} onClick={onAccept}>
              Accept<span className="sr-only"> {label}</span>
            </Button>
          )}
          {repairable && (
            <Button small icon={<Wrench className="size-3.5" />} onClick={onRepair}>
              Repair<span className="sr-only"> {label}</span>
            </Button>
          )}
        </div>
      </div>
      {open && (
        <div className="space-y-3 border-t bg-canvas px-4 py-4 sm:pl-12">
          {alone ? (
            <p className="flex gap-1.5 text-muted text-sm">
              Agent <AgentLink id={first.node_id} name={first.name} />
            </p>
          ) : (
            <Members agents={agents} />
          )}
          <OffDetails agent={first} onWithdraw={onWithdraw} />
        </div>
      )}
    </li>
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
        These agents have the same number of drifted resources. The resources themselves were not compared. Shown:{' '}
        <Line text={first.name ?? first.node_id} maxLength={64} />.
      </p>
    </div>
  );
}

function factsOf({ drift, unapplied, pending_removals }: OffAgent): string {
  const drifted = drift.reduce((sum, { resources, accepted }) => sum + (accepted === null ? resources : 0), 0);
  const resources = (count: number, what: string) => `${count} ${count === 1 ? 'resource' : 'resources'} ${what}`;
  return [
    ...(drifted > 0 ? [resources(drifted, 'drifted')] : []),
    ...(unapplied > 0 ? [`${unapplied} not applied`] : []),
    ...(pending_removals > 0 ? [`${pending_removals} to remove`] : []),
  ].join(' · ');
}
