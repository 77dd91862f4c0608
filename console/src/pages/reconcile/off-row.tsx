import type { OffAgent } from '@muster/protocol/http';
import { ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { findingsOf, reasonWords } from '../../../../client/src/reason-words.ts';
import { Badge, Dot } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Line, Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { AgentLink } from '../links.tsx';
import { issuesOf } from './issues.ts';
import { acceptable, canRepair, type OffGroup, reasonTones } from './off.ts';
import { OffDetails } from './off-details.tsx';

/** Columns of the list: a checkbox, the agent, its worst reason, the resources, the time, and buttons. */
export const offColumns =
  'grid grid-cols-[1rem_minmax(0,1fr)_auto] gap-x-3 gap-y-1 px-4 md:grid-cols-[1rem_minmax(7rem,11rem)_6rem_minmax(0,1fr)_4rem_8rem]';

/** Maximum number of resources that a row names. */
const maxIssues = 3;

/** A row for an out-of-sync agent, or for a group of agents with the same reasons. Expands to show the details. */
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
  const [worst] = findingsOf(first);
  const since = first.drift.find(({ accepted }) => accepted === null)?.since ?? first.failed_operation?.finished_at;
  return (
    <li className={classNames(chosen && 'bg-accent-soft/40')}>
      <div className={classNames(offColumns, 'items-start py-2 text-sm max-sm:items-center')}>
        <label className="-m-3.5 p-3.5">
          <input
            type="checkbox"
            aria-label={`Select ${label}`}
            className="mt-1 block size-4 max-sm:mt-0 accent-[var(--accent)]"
            checked={chosen}
            onChange={(event) => onChoose(event.target.checked)}
          />
        </label>
        <h2 className="min-w-0">
          <button
            type="button"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            className="wraps-names flex min-h-6 min-w-0 max-w-full items-center gap-1.5 rounded text-left font-medium max-sm:min-h-11"
          >
            <ChevronRight
              aria-hidden="true"
              className={classNames(
                'size-4 shrink-0 text-muted transition-transform duration-100',
                open && 'rotate-90',
              )}
            />
            <Line text={label} maxLength={64} />
          </button>
          {alone && !first.connected && (
            <span className="block pl-5.5 text-muted text-xs">
              <Dot tone="neutral">
                offline, last seen <Time at={first.last_seen_at} />
              </Dot>
            </span>
          )}
        </h2>
        <span className="flex min-h-6 items-center justify-end md:justify-start">
          {worst === undefined ? (
            <Badge>accepted</Badge>
          ) : (
            <Badge tone={reasonTones[worst]}>{reasonWords[worst]}</Badge>
          )}
        </span>
        <Issues agent={first} />
        <span className="flex min-h-6 items-center text-muted text-xs max-md:hidden">
          {since !== null && since !== undefined && <Time at={since} />}
        </span>
        <span className="col-[2/-1] flex justify-end gap-1.5 md:col-auto">
          {agents.some((agent) => acceptable(agent).length > 0) && (
            <Button small look="quiet" onClick={onAccept}>
              Accept…<span className="sr-only"> {label}</span>
            </Button>
          )}
          {agents.some(canRepair) && (
            <Button small onClick={onRepair}>
              Fix…<span className="sr-only"> {label}</span>
            </Button>
          )}
        </span>
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

function Issues({ agent }: { readonly agent: OffAgent }) {
  const { issues, more } = issuesOf(agent);
  const hidden = more + Math.max(0, issues.length - maxIssues);
  return (
    <ul aria-label="Issues" className="col-[2/-1] min-w-0 md:col-auto">
      {issues.slice(0, maxIssues).map(({ text }) => (
        <li key={text} className="min-w-0 py-1 font-mono text-xs leading-4">
          <Text text={text} maxLength={160} />
        </li>
      ))}
      {hidden > 0 && <li className="text-muted text-xs">and {hidden} more</li>}
    </ul>
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
