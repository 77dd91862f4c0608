import type { Agent } from '@muster/protocol/http';
import { Button } from '../../parts/button.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Id } from '../../parts/copy.tsx';
import { Text } from '../../parts/text.tsx';

/** Lists the values to verify before approving an agent, because an agent can report any hostname. */
export function ApprovalCheck({ agent, onApprove }: { readonly agent: Agent; readonly onApprove: () => void }) {
  const { node_id, initial_hostname, initial_ip, pin_source } = agent;
  return (
    <Callout
      tone="warn"
      title="This agent is pending approval. Verify that it is the machine you expect"
      action={
        <Button look="primary" onClick={onApprove}>
          Approve…
        </Button>
      }
    >
      <ol className="mt-1 list-decimal space-y-1 pl-5">
        <li>
          You expect a machine with the hostname{' '}
          <strong>
            <Text text={initial_hostname} maxLength={100} />
          </strong>{' '}
          to connect from <code className="font-mono text-xs">{initial_ip}</code>. The agent chooses the hostname; the
          address comes from the connection.
        </li>
        <li>
          The agent’s log on the machine shows the same node ID at startup: <Id id={node_id} length={32} />
          The ID is derived from the agent’s key, so no other machine can have it.
        </li>
        {pin_source === 'first_use' && (
          <li>
            The agent trusted this orchestrator on first use. An attacker on the network could have impersonated the
            orchestrator. Check the machine for unexpected changes, or connect it again with{' '}
            <code className="font-mono text-xs">--orchestrator-key</code>.
          </li>
        )}
      </ol>
    </Callout>
  );
}
