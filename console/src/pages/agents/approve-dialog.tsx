import type { Agent } from '@muster/protocol/http';
import { useState } from 'react';
import { approveAgent, rejectAgent } from '../../api/agents.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Id } from '../../parts/copy.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { fieldClasses } from '../../parts/form/field.tsx';
import { compareNames } from '../../parts/table/compare-names.ts';
import { Line } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { stateSince, systemText } from './agent-state.ts';
import { faultsOf, namesFor } from './naming.ts';

const columns = 'sm:grid sm:grid-cols-[1rem_minmax(8rem,2fr)_minmax(0,3fr)_8rem_5rem] sm:items-center sm:gap-x-4';

interface ApproveProps {
  readonly agents: readonly Agent[];
  /** All agents, including those that are not selected, to detect names that are taken. */
  readonly all: readonly Agent[];
  /** Whether the operator selected the agents. If not, and there are several, none is ticked at first. */
  readonly areSelected?: boolean;
  readonly onClose: () => void;
  readonly onDone?: (ids: readonly string[]) => void;
}

/** Tracks the agents' names, and which agents are ticked or rejected. */
function useApproval({ agents, all, areSelected = true }: ApproveProps) {
  // The agents when the dialog opened, by hostname. Rows must not move while agents are approved.
  const [waiting] = useState(() => agents.toSorted((a, b) => compareNames(a.initial_hostname, b.initial_hostname)));
  const [taken] = useState(() => {
    const approvedIds = new Set(agents.map(({ node_id }) => node_id));
    return new Set(all.flatMap(({ node_id, name }) => (name === null || approvedIds.has(node_id) ? [] : [name])));
  });
  const [names, setNames] = useState(() => namesFor(waiting, taken));
  const [ticked, setTicked] = useState<ReadonlySet<string>>(
    () => new Set(areSelected || agents.length === 1 ? agents.map(({ node_id }) => node_id) : []),
  );
  const [rejected, setRejected] = useState<ReadonlySet<string>>(new Set());
  const open = waiting.filter(({ node_id }) => !rejected.has(node_id));
  const chosen = open.filter(({ node_id }) => ticked.has(node_id));
  const chosenNames = new Map([...names].filter(([id]) => ticked.has(id) && !rejected.has(id)));
  return {
    ...{ waiting, open, chosen, ticked, rejected, faults: faultsOf(chosenNames, taken) },
    nameOf: (id: string) => names.get(id) ?? '',
    rename: (id: string, name: string) => setNames(new Map(names).set(id, name)),
    tick: (ids: readonly string[], isTicked: boolean) => {
      const next = new Set(ticked);
      for (const id of ids) isTicked ? next.add(id) : next.delete(id);
      setTicked(next);
    },
    markRejected: (id: string) => setRejected(new Set(rejected).add(id)),
  };
}

type Approval = ReturnType<typeof useApproval>;

/**
 * Approves agents. The operator can leave out or reject some of them, and can edit their names first, because names are
 * permanent.
 */
export function ApproveDialog(props: ApproveProps) {
  const { onClose, onDone } = props;
  const approval = useApproval(props);
  const { waiting, open, chosen, faults, nameOf } = approval;
  const [rejecting, setRejecting] = useState<Agent | null>(null);
  const count = waiting.length;
  return (
    <>
      <EachDialog
        open
        wide
        onOpenChange={(isOpen) => !isOpen && onClose()}
        title={count === 1 ? 'Approve this agent' : 'Approve agents'}
        {...(count === 1 ? {} : { description: 'Select the agents to approve.' })}
        action={count === 1 ? 'Approve' : `Approve ${chosen.length}`}
        done="approved"
        ready={faults.size === 0}
        items={chosen.map(({ node_id, name }) => ({ id: node_id, name: nameOf(node_id), named: name !== null }))}
        act={({ id, name, named }) => approveAgent(id, named ? undefined : name)}
        onDone={(ids) => {
          if (ids.length > 0) notify(ids.length === 1 ? 'Approved' : `${ids.length} agents approved`);
          onDone?.(ids);
        }}
      >
        <ul className="mb-4 list-disc space-y-1 pl-5 text-sm">
          <li>
            <strong className="font-medium">Approving</strong> lets the agent receive modules, secrets, and commands
            under a permanent name.
          </li>
          <li>
            <strong className="font-medium">Compare</strong> the node ID with the agent’s log on the machine: it is the
            fingerprint of the agent’s key. A hostname proves nothing.
          </li>
        </ul>
        <div
          className="rounded-md border sm:max-h-[52vh] sm:overflow-auto"
          tabIndex={0}
          role="group"
          aria-label="Agents"
        >
          <div
            className={`sticky top-0 z-10 flex min-h-8 items-center gap-2 border-b bg-surface px-3 font-medium text-muted text-xs ${columns}`}
          >
            <TickAll {...{ open, chosen }} tick={approval.tick} />
            <span className="sm:hidden">Select all</span>
            <span className="max-sm:hidden">Name</span>
            <span className="max-sm:hidden">Hostname and node ID</span>
            <span className="max-sm:hidden">Address</span>
          </div>
          <ul className="divide-y">
            {waiting.map((agent) => (
              <AgentRow key={agent.node_id} {...{ agent, approval }} onReject={() => setRejecting(agent)} />
            ))}
          </ul>
        </div>
      </EachDialog>
      {rejecting !== null && (
        <Confirm
          open
          onOpenChange={(isOpen) => !isOpen && setRejecting(null)}
          title={`Reject the agent ${rejecting.initial_hostname.slice(0, 64)}?`}
          action="Reject agent"
          onConfirm={async () => {
            await rejectAgent(rejecting.node_id);
            approval.markRejected(rejecting.node_id);
          }}
        >
          This closes its connection. You can approve it later.
        </Confirm>
      )}
    </>
  );
}

const tickClasses = 'size-4 shrink-0';

function TickAll({ open, chosen, tick }: Pick<Approval, 'open' | 'chosen' | 'tick'>) {
  const hasAll = open.length > 0 && chosen.length === open.length;
  return (
    <input
      type="checkbox"
      aria-label="Select all"
      className={tickClasses}
      checked={hasAll}
      disabled={open.length === 0}
      ref={(box) => {
        if (box !== null) box.indeterminate = chosen.length > 0 && !hasAll;
      }}
      onChange={() =>
        tick(
          open.map(({ node_id }) => node_id),
          !hasAll,
        )
      }
    />
  );
}

function AgentRow({
  agent,
  approval: { faults, ticked, rejected, nameOf, rename, tick },
  onReject,
}: {
  readonly agent: Agent;
  readonly approval: Approval;
  readonly onReject: () => void;
}) {
  const { node_id, name, initial_hostname, initial_ip } = agent;
  const fault = faults.get(node_id);
  const system = systemText(agent);
  const isRejected = rejected.has(node_id);
  const label = initial_hostname.slice(0, 80);
  return (
    // On a phone, the field is below the values that identify the machine.
    <li className={`px-3 py-2 text-sm max-sm:relative max-sm:space-y-1 max-sm:py-3 max-sm:pl-10 ${columns}`}>
      <input
        type="checkbox"
        aria-label={`Select ${label}`}
        className={`${tickClasses} max-sm:absolute max-sm:top-3.5 max-sm:left-3`}
        checked={ticked.has(node_id) && !isRejected}
        disabled={isRejected}
        onChange={(event) => tick([node_id], event.target.checked)}
      />
      <span className="block min-w-0 sm:order-2">
        <span className="flex min-w-0 font-medium max-sm:pr-16">
          <Line text={initial_hostname} maxLength={80} />
        </span>
        <span className="block text-muted [overflow-wrap:anywhere]">
          <Id id={node_id} length={node_id.length} />
        </span>
        <span className="flex min-w-0 gap-1 text-muted text-xs">
          {system !== '' && <Line text={`${system},`} maxLength={60} />}
          <span className="shrink-0">
            {agent.connected ? 'connected' : 'last seen'} <Time at={stateSince(agent)} />
          </span>
        </span>
      </span>
      <span className="block font-mono text-muted text-xs sm:order-3">{initial_ip}</span>
      <div className="min-w-0 sm:order-1">
        <span aria-hidden="true" className="mb-1 block text-muted text-xs sm:hidden">
          Name
        </span>
        <input
          aria-label={`Name of ${label}`}
          aria-invalid={fault === undefined ? undefined : true}
          aria-describedby={fault === undefined ? undefined : `fault-${node_id}`}
          className={`${fieldClasses} h-7 max-sm:h-11`}
          autoComplete="off"
          spellCheck={false}
          disabled={name !== null || isRejected}
          value={nameOf(node_id)}
          onChange={(event) => rename(node_id, event.target.value)}
        />
        {fault !== undefined && (
          <p id={`fault-${node_id}`} className="mt-0.5 text-bad text-xs">
            {fault}
          </p>
        )}
      </div>
      <span className="block max-sm:absolute max-sm:top-2 max-sm:right-2 max-sm:mt-0 sm:order-4 sm:text-right">
        {isRejected ? (
          <Badge tone="neutral">rejected</Badge>
        ) : (
          // On a phone, a border would cross the button that copies the ID.
          <Button
            small
            look="danger"
            className="max-sm:border-transparent max-sm:bg-transparent"
            aria-label={`Reject ${label}`}
            onClick={onReject}
          >
            Reject
          </Button>
        )}
      </span>
    </li>
  );
}
