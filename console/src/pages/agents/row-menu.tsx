import type { Agent } from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { Ban, Check, Ellipsis, ListChecks, Play, Server, SquareTerminal, Tag, Trash2 } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import { startPlan } from '../../api/operations.ts';
import { IconButton } from '../../parts/button.tsx';
import { Menu, MenuItem, MenuLine } from '../../parts/dialog/menu.tsx';
import { notifyError } from '../../parts/dialog/toast.tsx';
import { opensTerminal } from '../terminals/opens-terminal.ts';
import { agentParam, displayName, hasTerminalsDisabled } from './agent-state.ts';

export type RowDialog = 'approve' | 'apply' | 'tag' | 'reject' | 'remove';

interface RowMenuProps {
  readonly agent: Agent;
  readonly onDialog: (dialog: RowDialog, agent: Agent) => void;
}

/** The menu of an agent's row. Rendered on the first click, so that it does not slow down rendering the rows. */
export function RowMenu({ agent, onDialog }: RowMenuProps) {
  const [isUsed, setUsed] = useState(false);
  const button = {
    small: true,
    tabIndex: -1,
    'data-row-menu': '',
    'aria-haspopup': 'menu',
    label: `Actions on ${displayName(agent).slice(0, 80)}`,
    icon: <Ellipsis aria-hidden="true" className="size-4" />,
  } as const;
  return isUsed ? (
    <Menu defaultOpen trigger={<IconButton {...button} />}>
      <Items agent={agent} onDialog={onDialog} />
    </Menu>
  ) : (
    <IconButton {...button} onClick={() => setUsed(true)} />
  );
}

/** Opens the menu of the focused row on Shift+F10 or the menu key. */
export function openRowMenu(event: KeyboardEvent<HTMLElement>): void {
  const isMenuKey = event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey);
  if (!isMenuKey || !(event.target instanceof HTMLElement) || event.target.dataset.index === undefined) return;
  const button = event.target.querySelector<HTMLElement>('[data-row-menu]');
  if (button === null) return;
  event.preventDefault();
  // An open menu's trigger reacts to keys and pointers, but not to click().
  if (button.dataset.state === undefined) button.click();
  else button.dispatchEvent(new window.KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
}

const icon = 'size-4';

function Items({ agent, onDialog }: RowMenuProps) {
  const { node_id, status, connected } = agent;
  const navigate = useNavigate();
  const params = { agent: agentParam(agent) };
  const plan = async () => {
    try {
      const { operation_id } = await startPlan({ node_id, modules: [] });
      await navigate({ to: '/operations/$operation', params: { operation: operation_id } });
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <>
      <MenuItem
        icon={<Server aria-hidden="true" className={icon} />}
        onSelect={() => void navigate({ to: '/agents/$agent', params })}
      >
        Details
      </MenuItem>
      <MenuLine />
      {status === 'approved' && (
        <>
          <MenuItem
            disabled={!connected}
            icon={<ListChecks aria-hidden="true" className={icon} />}
            onSelect={() => void plan()}
          >
            Plan
          </MenuItem>
          <MenuItem icon={<Play aria-hidden="true" className={icon} />} onSelect={() => onDialog('apply', agent)}>
            {connected ? 'Apply…' : 'Queue an apply…'}
          </MenuItem>
          <MenuItem
            disabled={!connected || hasTerminalsDisabled(agent)}
            icon={<SquareTerminal aria-hidden="true" className={icon} />}
            onSelect={() => void navigate({ to: '/terminals/new/$agent', params, state: opensTerminal })}
          >
            Open terminal
          </MenuItem>
        </>
      )}
      {status !== 'approved' && (
        <MenuItem icon={<Check aria-hidden="true" className={icon} />} onSelect={() => onDialog('approve', agent)}>
          Approve…
        </MenuItem>
      )}
      <MenuItem icon={<Tag aria-hidden="true" className={icon} />} onSelect={() => onDialog('tag', agent)}>
        Tag…
      </MenuItem>
      <MenuLine />
      {status === 'rejected' ? (
        <MenuItem
          danger
          icon={<Trash2 aria-hidden="true" className={icon} />}
          onSelect={() => onDialog('remove', agent)}
        >
          Remove…
        </MenuItem>
      ) : (
        <MenuItem danger icon={<Ban aria-hidden="true" className={icon} />} onSelect={() => onDialog('reject', agent)}>
          Reject…
        </MenuItem>
      )}
    </>
  );
}
