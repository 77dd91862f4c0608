import type { Agent } from '@muster/protocol/http';
import { useState } from 'react';
import { rejectAgent } from '../../api/agents.ts';
import { checkNow } from '../../api/drift.ts';
import { runOnAgents } from '../../api/runs.ts';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { FanOutDialog } from '../../parts/form/fan-out-form.tsx';
import { Text } from '../../parts/text.tsx';
import { displayName } from './agent-state.ts';
import { ApproveDialog } from './approve-dialog.tsx';
import { TagDialog } from './tag-dialog.tsx';

export type BulkDialog = 'approve' | 'reject' | 'tag' | 'untag' | 'apply' | 'drift' | null;

export function BulkDialogs({
  open,
  chosen,
  hidden,
  all,
  onClose,
  onDeselect,
  onRun,
}: {
  readonly open: BulkDialog;
  readonly chosen: readonly Agent[];
  /** Number of selected agents that the filters hide. */
  readonly hidden: number;
  /** All agents, including those that are not selected. */
  readonly all: readonly Agent[];
  readonly onClose: () => void;
  readonly onDeselect: (ids: readonly string[]) => void;
  /** Called with the id of the run that an action started. */
  readonly onRun: (run_id: string) => void;
}) {
  const approved = chosen.filter(({ status }) => status === 'approved');
  const counted = `${approved.length} ${approved.length === 1 ? 'agent' : 'agents'}`;
  const notShown = hidden > 0 ? ` ${hidden} of the selected agents are hidden by filters.` : '';
  switch (open) {
    case 'approve':
      return (
        <ApproveDialog
          agents={chosen.filter(({ status }) => status !== 'approved')}
          all={all}
          onClose={onClose}
          onDone={onDeselect}
        />
      );
    case 'tag':
    case 'untag':
      return <TagDialog agents={chosen} remove={open === 'untag'} onClose={onClose} />;
    case 'reject':
      return <RejectDialog agents={chosen.filter(({ status }) => status !== 'rejected')} onClose={onClose} />;
    case 'drift':
      return (
        <EachDialog
          open
          onOpenChange={onClose}
          title={`Check ${counted} for drift`}
          description={`Compares each machine with its last apply. Changes nothing.${notShown}`}
          action={`Check ${approved.length}`}
          done="checked"
          items={itemsOf(approved)}
          act={({ id }) => checkNow(id)}
          onDone={(ids) => notify(`${ids.length} checked`)}
        />
      );
    case 'apply':
      return (
        <FanOutDialog
          open
          onOpenChange={onClose}
          title={`Apply to ${counted}`}
          description={`Applies the assignments of each agent.${notShown}`}
          action={approved.length === 1 ? 'Apply' : `Apply to ${approved.length} agents`}
          count={approved.length}
          onStart={async (options) => {
            const node_ids = approved.map(({ node_id }) => node_id);
            onRun((await runOnAgents({ kind: 'apply', node_ids, ...options })).run_id);
          }}
        />
      );
    case null:
      return null;
  }
}

const itemsOf = (agents: readonly Agent[]) => agents.map((agent) => ({ id: agent.node_id, name: displayName(agent) }));

function RejectDialog({ agents, onClose }: { readonly agents: readonly Agent[]; readonly onClose: () => void }) {
  // The selection when the dialog opened. It changes while agents are rejected.
  const [targets] = useState(agents);
  return (
    <EachDialog
      open
      danger
      onOpenChange={onClose}
      title={`Reject ${targets.length} ${targets.length === 1 ? 'agent' : 'agents'}`}
      description="Closes their connections and cancels their operations. You can approve them again."
      action={`Reject ${targets.length}`}
      done="rejected"
      items={itemsOf(targets)}
      act={({ id }) => rejectAgent(id)}
      onDone={(ids) => notify(`${ids.length} rejected`)}
    >
      <p className="text-sm">
        <Text
          text={targets
            .slice(0, 12)
            .map((agent) => displayName(agent).slice(0, 64))
            .join(', ')}
          maxLength={1_000}
        />
        {targets.length > 12 && ` and ${targets.length - 12} more`}
      </p>
    </EachDialog>
  );
}
