import type { Agent } from '@muster/protocol/http';
import { useMemo, useState } from 'react';
import { approveAgent } from '../../api/agents.ts';
import { Id } from '../../parts/copy.tsx';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { fieldClasses } from '../../parts/form/field.tsx';
import { Line } from '../../parts/text.tsx';
import { faultsOf, namesFor } from './naming.ts';

const columns = 'sm:grid sm:grid-cols-[14rem_minmax(0,1fr)_8rem_11rem] sm:items-center sm:gap-x-4';

/** Approves agents. The operator can edit their names first, because names are permanent. */
export function ApproveDialog({
  agents,
  all,
  onClose,
  onDone,
}: {
  readonly agents: readonly Agent[];
  /** All agents, including those that are not selected, to detect names that are taken. */
  readonly all: readonly Agent[];
  readonly onClose: () => void;
  readonly onDone?: (ids: readonly string[]) => void;
}) {
  // The agents when the dialog opened. Rows must not move while agents are approved.
  const [waiting] = useState(agents);
  const [taken] = useState(() => {
    const approvedIds = new Set(agents.map(({ node_id }) => node_id));
    return new Set(all.flatMap(({ node_id, name }) => (name === null || approvedIds.has(node_id) ? [] : [name])));
  });
  const [names, setNames] = useState(() => namesFor(waiting, taken));
  const faults = useMemo(() => faultsOf(names, taken), [names, taken]);
  const count = waiting.length;
  const nameOf = (id: string) => names.get(id) ?? '';
  return (
    <EachDialog
      open
      wide
      onOpenChange={(open) => !open && onClose()}
      title={count === 1 ? 'Approve this agent' : `Approve ${count} agents`}
      description="Approved agents can receive modules, secrets, and commands. Names are permanent."
      action={count === 1 ? 'Approve' : `Approve ${count}`}
      done="approved"
      ready={faults.size === 0}
      items={waiting.map(({ node_id, name }) => ({ id: node_id, name: nameOf(node_id), named: name !== null }))}
      act={({ id, name, named }) => approveAgent(id, named ? undefined : name)}
      onDone={(ids) => {
        if (ids.length > 0) notify(ids.length === 1 ? 'Approved' : `${ids.length} agents approved`);
        onDone?.(ids);
      }}
    >
      <div className="max-h-[52vh] overflow-auto rounded-md border" tabIndex={0} role="group" aria-label="Names">
        <div
          aria-hidden="true"
          className={`sticky top-0 h-8 border-b bg-surface px-3 font-medium text-muted text-xs max-sm:hidden ${columns}`}
        >
          <span>Name</span>
          <span>Hostname</span>
          <span>Address</span>
          <span>Node id</span>
        </div>
        <ul className="divide-y">
          {waiting.map(({ node_id, name, initial_hostname, initial_ip }) => {
            const fault = faults.get(node_id);
            return (
              // On a phone, the field is below what identifies the machine.
              <li key={node_id} className={`px-3 py-1.5 text-sm max-sm:space-y-1 max-sm:py-3 ${columns}`}>
                <span className="flex min-w-0 max-sm:font-medium sm:order-2">
                  <Line text={initial_hostname} maxLength={80} />
                </span>
                <span className="flex flex-wrap items-baseline gap-x-3 sm:contents">
                  <span className="font-mono text-muted text-xs sm:order-3">{initial_ip}</span>
                  <span className="sm:order-4">
                    <Id id={node_id} length={12} />
                  </span>
                </span>
                <div className="min-w-0 sm:order-1">
                  <input
                    aria-label={`Name of ${initial_hostname.slice(0, 80)}`}
                    aria-invalid={fault === undefined ? undefined : true}
                    aria-describedby={fault === undefined ? undefined : `fault-${node_id}`}
                    className={`${fieldClasses} h-7 max-sm:h-11`}
                    autoComplete="off"
                    spellCheck={false}
                    disabled={name !== null}
                    value={nameOf(node_id)}
                    onChange={(event) => setNames(new Map(names).set(node_id, event.target.value))}
                  />
                  {fault !== undefined && (
                    <p id={`fault-${node_id}`} className="mt-0.5 text-bad text-xs">
                      {fault}
                    </p>
                  )}
                </div>
              </li>
            );
          })}
        </ul>
      </div>
    </EachDialog>
  );
}
