import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { discoverAgents } from '../../api/enrolment.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import { Input } from '../../parts/form/field.tsx';
import { Problem } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';

/** Calls agents in the network that do not know where to go yet. */
export function DiscoverForm({ onClose }: { readonly onClose: () => void }) {
  const [target, setTarget] = useState('');
  const call = useMutation({ mutationFn: () => discoverAgents(target.trim() === '' ? undefined : target.trim()) });
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Discover agents"
      description="A signed call goes out by UDP. Agents that wait for one connect, and wait for your approval."
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button look="primary" type="submit" form="discover" busy={call.isPending}>
            Call
          </Button>
        </>
      }
    >
      <form
        id="discover"
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          call.mutate();
        }}
      >
        <Problem error={call.error} />
        <Input
          label="Where to (optional)"
          placeholder="10.0.3.17:4749"
          autoFocus
          value={target}
          onChange={(event) => setTarget(event.target.value)}
          hint="One machine as host:port. Left empty, the call goes to every network that this orchestrator is in."
        />
        <div role="status" className="text-sm">
          {call.data && (
            <>
              <p>Called:</p>
              <ul className="list-disc pl-5 font-mono text-xs">
                {call.data.sent_to.map((place) => (
                  <li key={place}>
                    <Text text={place} />
                  </li>
                ))}
              </ul>
              <p className="mt-2">
                Who answers shows under{' '}
                <Link to="/agents" search={{ status: 'pending' } as never} className="text-accent underline">
                  pending agents
                </Link>{' '}
                within seconds.
              </p>
            </>
          )}
        </div>
      </form>
    </Dialog>
  );
}
