import type { Agent } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Copy, Ellipsis, ListChecks, Play, SquareTerminal } from 'lucide-react';
import { agentsQuery, forgetAgent, rejectAgent } from '../../api/agents.ts';
import { checkNow } from '../../api/drift.ts';
import { startApply, startPlan } from '../../api/operations.ts';
import { Button, buttonClasses, IconButton } from '../../parts/button.tsx';
import { Confirm } from '../../parts/dialog/dialog.tsx';
import { Menu, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { agentParam, displayName } from './agent-state.ts';
import { ApproveDialog } from './approve-dialog.tsx';

export type AgentDialog = 'approve' | 'reject' | 'remove' | 'apply' | null;

export function AgentActions({
  agent,
  dialog,
  onDialog,
}: {
  readonly agent: Agent;
  readonly dialog: AgentDialog;
  readonly onDialog: (dialog: AgentDialog) => void;
}) {
  const { node_id, status, connected } = agent;
  const navigate = useNavigate();
  const goTo = (operation: string) => void navigate({ to: '/operations/$operation', params: { operation } });
  const plan = useMutation({
    mutationFn: () => startPlan({ node_id, modules: [] }),
    onSuccess: ({ operation_id }) => goTo(operation_id),
    onError: notifyError,
  });
  const check = useMutation({
    mutationFn: () => checkNow(node_id),
    onSuccess: ({ drift_id }) => void navigate({ to: '/drift/$record', params: { record: drift_id } }),
    onError: notifyError,
  });
  const copy = async (text: string) => {
    await navigator.clipboard.writeText(text);
    notify('Copied');
  };
  const close = () => onDialog(null);
  const name = displayName(agent).slice(0, 64);
  const approved = status === 'approved';
  return (
    <>
      {status === 'rejected' && (
        <Button look="primary" onClick={() => onDialog('approve')}>
          Approve…
        </Button>
      )}
      {approved && (
        <>
          {connected && (
            <Link
              to="/terminals/new/$agent"
              params={{ agent: agentParam(agent) }}
              className={buttonClasses('plain')}
              preload={false}
            >
              <SquareTerminal aria-hidden="true" className="size-4" />
              Terminal
            </Link>
          )}
          <Button
            icon={<ListChecks aria-hidden="true" className="size-4" />}
            busy={plan.isPending}
            disabled={!connected}
            title={connected ? undefined : 'The agent is not connected'}
            onClick={() => plan.mutate()}
          >
            Plan
          </Button>
          <Button
            look="primary"
            icon={<Play aria-hidden="true" className="size-4" />}
            disabled={!connected}
            title={connected ? undefined : 'The agent is not connected'}
            onClick={() => onDialog('apply')}
          >
            Apply…
          </Button>
        </>
      )}
      <Menu
        trigger={<IconButton look="plain" label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}
      >
        {approved && (
          <MenuItem disabled={!connected || check.isPending} onSelect={() => check.mutate()}>
            Check drift
          </MenuItem>
        )}
        <MenuItem icon={<Copy aria-hidden="true" className="size-4" />} onSelect={() => void copy(displayName(agent))}>
          Copy name
        </MenuItem>
        <MenuItem icon={<Copy aria-hidden="true" className="size-4" />} onSelect={() => void copy(node_id)}>
          Copy node id
        </MenuItem>
        <MenuItem
          icon={<Copy aria-hidden="true" className="size-4" />}
          onSelect={() => void copy(JSON.stringify(agent, null, 2))}
        >
          Copy as JSON
        </MenuItem>
        <MenuLine />
        {status === 'rejected' ? (
          <MenuItem danger onSelect={() => onDialog('remove')}>
            Remove…
          </MenuItem>
        ) : (
          <MenuItem danger onSelect={() => onDialog('reject')}>
            Reject…
          </MenuItem>
        )}
      </Menu>
      {dialog === 'approve' && <Approve agent={agent} onClose={close} />}
      <Confirm
        open={dialog === 'apply'}
        onOpenChange={(open) => !open && close()}
        title={`Apply to ${name}`}
        action="Apply"
        danger={false}
        onConfirm={async () => goTo((await startApply({ node_id, modules: [] })).operation_id)}
      >
        This applies everything that the assignments of this agent declare, and removes what they no longer declare. To
        preview the changes, plan first.
      </Confirm>
      <Confirm
        open={dialog === 'reject'}
        onOpenChange={(open) => !open && close()}
        title={`Reject ${name}`}
        action="Reject"
        onConfirm={() => rejectAgent(node_id)}
      >
        This closes its connection and cancels its operations. Applied resources stay on the machine. You can approve it
        again{approved && ' under the same name'}.
      </Confirm>
      <Confirm
        open={dialog === 'remove'}
        onOpenChange={(open) => !open && close()}
        title={`Remove ${name}`}
        action="Remove"
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

/** Needs the other agents, because names are unique. */
function Approve({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }) {
  const { data } = useQuery(agentsQuery);
  return data === undefined ? null : <ApproveDialog agents={[agent]} all={data} onClose={onClose} />;
}
