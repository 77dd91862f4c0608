import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { discoverAgents } from '../../api/enrollment.ts';
import { FormDialog } from '../../parts/dialog/form-dialog.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Text } from '../../parts/text.tsx';

/** Broadcasts a discovery message to agents that have no orchestrator yet. */
export function DiscoverForm({ onClose }: { readonly onClose: () => void }) {
  const [target, setTarget] = useState('');
  const discover = useMutation({ mutationFn: () => discoverAgents(target.trim() === '' ? undefined : target.trim()) });
  return (
    <FormDialog
      title="Discover agents"
      description="Sends a signed UDP message. Agents that wait for discovery then connect and are pending approval."
      action="Discover"
      cancel={discover.data === undefined ? 'Cancel' : 'Close'}
      request={discover}
      onSubmit={() => discover.mutate()}
      onClose={onClose}
    >
      <Input
        label="Target (optional)"
        placeholder="10.0.3.17:4747"
        autoFocus
        value={target}
        onChange={(event) => setTarget(event.target.value)}
        hint="One machine as host:port. If empty, the message is broadcast to all networks of the orchestrator."
      />
      <div role="status" className="text-sm empty:hidden">
        {discover.data && (
          <>
            <p>Sent to:</p>
            <ul className="list-disc pl-5 font-mono text-xs">
              {discover.data.sent_to.map((address) => (
                <li key={address}>
                  <Text text={address} />
                </li>
              ))}
            </ul>
            <p className="mt-2">
              Agents that respond appear under{' '}
              <Link to="/agents" search={{ status: 'pending' } as never} className="text-accent underline">
                pending agents
              </Link>{' '}
              within seconds.
            </p>
          </>
        )}
      </div>
    </FormDialog>
  );
}
