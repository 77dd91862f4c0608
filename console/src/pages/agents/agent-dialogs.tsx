import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { agentsQuery, forgetAgent, rejectAgent } from '../../api/agents.ts';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { ApplyAgentDialog } from '../apply/apply-agent-dialog.tsx';
import { displayName } from './agent-state.ts';
import { ApproveDialog } from './approve-dialog.tsx';

export type AgentDialog = 'approve' | 'reject' | 'remove' | 'apply' | 'apply-and-remove' | null;

export function AgentDialogs({
  agent,
  dialog,
  onClose,
}: {
  readonly agent: Agent;
  readonly dialog: AgentDialog;
  readonly onClose: () => void;
}) {
  const { node_id, status } = agent;
  const navigate = useNavigate();
  const close = (open: boolean) => !open && onClose();
  const name = displayName(agent).slice(0, 64);
  return (
    <>
      {dialog === 'approve' && <Approve agent={agent} onClose={onClose} />}
      {dialog === 'apply' && <ApplyAgentDialog agent={agent} title={`Apply to ${name}`} onClose={onClose} />}
      {dialog === 'apply-and-remove' && (
        <ApplyAgentDialog agent={agent} title={`Apply to ${name}, and remove unassigned modules`} onClose={onClose} />
      )}
      <Confirm
        open={dialog === 'reject'}
        onOpenChange={close}
        title={`Reject the agent ${name}?`}
        action="Reject agent"
        onConfirm={() => rejectAgent(node_id)}
      >
        This closes its connection and cancels its operations. Applied resources stay on the machine. You can approve it
        again{status === 'approved' && ' under the same name'}.
      </Confirm>
      <Confirm
        open={dialog === 'remove'}
        onOpenChange={close}
        title={`Remove the agent ${name}?`}
        action="Remove agent"
        onConfirm={async () => {
          await forgetAgent(node_id);
          await navigate({ to: '/agents' });
        }}
      >
        This deletes the agent with its tags and its state. If it connects again, it needs a new approval.
      </Confirm>
    </>
  );
}

/** Waits until all agents are loaded, because names must be unique. */
function Approve({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }) {
  const { data } = useQuery(agentsQuery);
  return data === undefined ? null : <ApproveDialog agents={[agent]} all={data} onClose={onClose} />;
}
