import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { agentsQuery } from '../../api/agents.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Picker } from '../../parts/form/picker.tsx';
import { agentParam, displayName, hasTerminalsDisabled } from '../agents/agent-state.ts';
import { opensTerminal } from './opens-terminal.ts';

/** Chooses a connected agent and opens a terminal on it. */
export function OpenTerminalDialog({ onClose }: { readonly onClose: () => void }) {
  const { data: agents } = useQuery(agentsQuery);
  const navigate = useNavigate();
  const connected =
    agents?.filter((agent) => agent.connected && agent.status === 'approved' && !hasTerminalsDisabled(agent)) ?? [];
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Open a terminal"
      footer={<Button onClick={onClose}>Cancel</Button>}
    >
      {/* The body scrolls, so that it must be as high as the open list. */}
      <div className="min-h-84">
        <Picker
          isOpenAtFirst
          label="Agent"
          placeholder="Type part of a name"
          none={agents === undefined ? 'Loading agents…' : 'No matching connected agent with terminals'}
          options={connected.map((agent) => ({ value: agentParam(agent), label: displayName(agent).slice(0, 64) }))}
          value=""
          onPick={(agent) => void navigate({ to: '/terminals/new/$agent', params: { agent }, state: opensTerminal })}
        />
      </div>
    </Dialog>
  );
}
