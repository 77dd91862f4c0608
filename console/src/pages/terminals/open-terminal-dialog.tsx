import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Picker } from '../../parts/form/picker.tsx';
import { opensTerminal } from './opens-terminal.ts';
import { terminalOptions } from './terminal-options.ts';

/** Chooses an agent and opens a terminal on it. */
export function OpenTerminalDialog({ onClose }: { readonly onClose: () => void }) {
  const { data: agents } = useQuery(agentsQuery);
  const navigate = useNavigate();
  const options = useMemo(() => terminalOptions(agents ?? []), [agents]);
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Open a terminal"
      footer={<Button onClick={onClose}>Cancel</Button>}
    >
      {/* The body scrolls, so it must be as high as the open list. */}
      <div className="min-h-84">
        <Picker
          isOpenAtFirst
          label="Agent"
          placeholder="Type part of a name"
          none={agents === undefined ? 'Loading agents…' : 'No matching agent'}
          options={options}
          value=""
          onPick={(agent) => void navigate({ to: '/terminals/new/$agent', params: { agent }, state: opensTerminal })}
        />
      </div>
    </Dialog>
  );
}
