import type { Agent } from '@muster/protocol/http';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Text } from '../../parts/text.tsx';

/** What one makes sure of before an agent is let in: all that it says of itself could be said by another machine. */
export function ApprovalCheck({ agent, onApprove }: { readonly agent: Agent; readonly onApprove: () => void }) {
  const { node_id, initial_hostname, initial_ip, pin_source } = agent;
  return (
    <Callout
      tone="warn"
      title="It waits for approval. Make sure that it is the machine you expect"
      action={
        <Button look="primary" onClick={onApprove}>
          Approve…
        </Button>
      }
    >
      <ol className="mt-1 list-decimal space-y-1 pl-5">
        <li>
          You know why a machine of the hostname{' '}
          <strong>
            <Text text={initial_hostname} most={100} />
          </strong>{' '}
          asks for this, from <code className="font-mono text-xs">{initial_ip}</code>. A hostname can be anything; the
          address is that of the connection.
        </li>
        <li>
          On the machine, the agent’s log says the same node id when it starts: <Id id={node_id} length={32} />
          It stands for the agent’s key: nobody else can have it.
        </li>
        {pin_source === 'first_use' && (
          <li>
            The agent trusted this orchestrator unseen. Somebody between the two could have answered in its place: look
            at the machine that nothing strange was applied, or connect it anew with{' '}
            <code className="font-mono text-xs">--orchestrator-key</code>.
          </li>
        )}
      </ol>
    </Callout>
  );
}
