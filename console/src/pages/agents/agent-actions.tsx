import type { Agent } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { Ban, Copy, Ellipsis, ListChecks, Play, RefreshCw, SquareTerminal, Trash2 } from 'lucide-react';
import { checkNow } from '../../api/drift.ts';
import { startPlan } from '../../api/operations.ts';
import { Button, buttonClasses, IconButton } from '../../parts/button.tsx';
import { Menu, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';
import { opensTerminal } from '../terminals/opens-terminal.ts';
import { type AgentDialog, AgentDialogs } from './agent-dialogs.tsx';
import { agentParam, displayName, hasTerminalsDisabled, terminalsDisabledText } from './agent-state.ts';

interface AgentActionsProps {
  readonly agent: Agent;
  readonly dialog: AgentDialog;
  readonly onDialog: (dialog: AgentDialog) => void;
  /** Null while it is not known whether the agent is out of sync. */
  readonly onApply: (() => void) | null;
  /** Whether `onApply` keeps modules that were applied without an assignment. */
  readonly keepsUnassigned: boolean;
}

export function AgentActions({ agent, dialog, onDialog, onApply, keepsUnassigned }: AgentActionsProps) {
  const { node_id, status, connected } = agent;
  const navigate = useNavigate();
  const plan = useMutation({
    mutationFn: () => startPlan({ node_id, modules: [] }),
    onSuccess: ({ operation_id }) =>
      void navigate({ to: '/operations/$operation', params: { operation: operation_id } }),
    onError: notifyError,
  });
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
          {connected && hasTerminalsDisabled(agent) && (
            // The attribute `disabled` would hide the reason from keyboard and touch users.
            <Button
              aria-disabled
              title={terminalsDisabledText}
              icon={<SquareTerminal aria-hidden="true" className="size-4" />}
              onClick={() => notify(terminalsDisabledText)}
            >
              Terminal
            </Button>
          )}
          {connected && !hasTerminalsDisabled(agent) && (
            <Link
              to="/terminals/new/$agent"
              params={{ agent: agentParam(agent) }}
              state={opensTerminal}
              className={buttonClasses('plain')}
              preload={false}
            >
              <SquareTerminal aria-hidden="true" className="size-4" />
              Terminal
            </Link>
          )}
          {connected && (
            <Button
              icon={<ListChecks aria-hidden="true" className="size-4" />}
              busy={plan.isPending}
              onClick={() => plan.mutate()}
            >
              Plan
            </Button>
          )}
          {connected && (
            <Button
              look="primary"
              icon={<Play aria-hidden="true" className="size-4" />}
              disabled={onApply === null}
              onClick={() => onApply?.()}
            >
              Apply…
            </Button>
          )}
        </>
      )}
      <AgentMenu agent={agent} onDialog={onDialog} keepsUnassigned={keepsUnassigned} />
      <AgentDialogs agent={agent} dialog={dialog} onClose={() => onDialog(null)} />
    </>
  );
}

async function copy(text: string): Promise<void> {
  await navigator.clipboard.writeText(text);
  notify('Copied');
}

function AgentMenu({
  agent,
  onDialog,
  keepsUnassigned,
}: Pick<AgentActionsProps, 'agent' | 'onDialog' | 'keepsUnassigned'>) {
  const { node_id, status, connected } = agent;
  const navigate = useNavigate();
  const check = useMutation({
    mutationFn: () => checkNow(node_id),
    onSuccess: ({ drift_id }) => void navigate({ to: '/drift/$record', params: { record: drift_id } }),
    onError: notifyError,
  });
  return (
    <Menu trigger={<IconButton look="plain" label="More" icon={<Ellipsis aria-hidden="true" className="size-4" />} />}>
      {status === 'approved' && (
        <MenuItem
          icon={<RefreshCw aria-hidden="true" className="size-4" />}
          disabled={!connected || check.isPending}
          onSelect={() => check.mutate()}
        >
          Check now
        </MenuItem>
      )}
      {keepsUnassigned && connected && (
        <MenuItem icon={<Play aria-hidden="true" className="size-4" />} onSelect={() => onDialog('apply-and-remove')}>
          Apply, and remove unassigned modules…
        </MenuItem>
      )}
      <MenuItem icon={<Copy aria-hidden="true" className="size-4" />} onSelect={() => void copy(displayName(agent))}>
        Copy name
      </MenuItem>
      <MenuItem icon={<Copy aria-hidden="true" className="size-4" />} onSelect={() => void copy(node_id)}>
        Copy node ID
      </MenuItem>
      <MenuItem
        icon={<Copy aria-hidden="true" className="size-4" />}
        onSelect={() => void copy(JSON.stringify(agent, null, 2))}
      >
        Copy as JSON
      </MenuItem>
      <MenuLine />
      {status === 'rejected' ? (
        <MenuItem danger icon={<Trash2 aria-hidden="true" className="size-4" />} onSelect={() => onDialog('remove')}>
          Remove…
        </MenuItem>
      ) : (
        <MenuItem danger icon={<Ban aria-hidden="true" className="size-4" />} onSelect={() => onDialog('reject')}>
          Reject…
        </MenuItem>
      )}
    </Menu>
  );
}
