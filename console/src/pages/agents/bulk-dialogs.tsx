import type { Agent } from '@muster/protocol/http';
import { useState } from 'react';
import { rejectAgent } from '../../api/agents.ts';
import { countedText } from '../../parts/count.ts';
import { EachDialog } from '../../parts/dialog/each-dialog.tsx';
import { notify } from '../../parts/dialog/toast.tsx';
import { Text } from '../../parts/text.tsx';
import { ApplyAgentDialog } from '../apply/apply-agent-dialog.tsx';
import { ApplyRunDialog } from '../apply/apply-run-dialog.tsx';
import { CheckDialog } from '../drift/check-dialog.tsx';
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
}: {
  readonly open: BulkDialog;
  readonly chosen: readonly Agent[];
  /** Number of selected agents that the filters hide. */
  readonly hidden: number;
  /** All agents, including those that are not selected. */
  readonly all: readonly Agent[];
  readonly onClose: () => void;
  readonly onDeselect: (ids: readonly string[]) => void;
}) {
  const approved = chosen.filter(({ status }) => status === 'approved');
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
      return <CheckDialog agents={itemsOf(approved)} note={notShown.trim()} onClose={onClose} />;
    case 'apply':
      return <ApplyToChosen agents={approved} note={notShown} onClose={onClose} />;
    case null:
      return null;
  }
}

/** Applies to the agents that were selected when the dialog opened. */
function ApplyToChosen({
  agents,
  note,
  onClose,
}: {
  readonly agents: readonly Agent[];
  readonly note: string;
  readonly onClose: () => void;
}) {
  const [targets] = useState(agents);
  const [only] = targets;
  if (only === undefined) return null;
  return targets.length === 1 ? (
    <ApplyAgentDialog agent={only} title={`Apply to ${displayName(only).slice(0, 64)}`} onClose={onClose} />
  ) : (
    <ApplyRunDialog
      title={`Apply to ${targets.length} agents`}
      description={`Applies the assignments of each agent.${note}`}
      loadSubjects={async () => [{ kind: 'agents', node_ids: targets.map(({ node_id }) => node_id), modules: [] }]}
      onClose={onClose}
    />
  );
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
      title={`Reject ${countedText(targets.length, 'agent')}`}
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
