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
      title="Pending approval. Verify that this is the machine you expect"
      action={
        <Button look="primary" onClick={onApprove}>
          Approve…
        </Button>
      }
    >
      <ol className="mt-1 list-decimal space-y-1 pl-5">
        <li>
          You expect{' '}
          <strong className="font-medium">
            <Text text={initial_hostname} maxLength={100} />
          </strong>{' '}
          to connect from <code className="font-mono text-xs">{initial_ip}</code>. A hostname proves nothing.
        </li>
        <li>
          The agent’s log on the machine shows the node ID <Id id={node_id} length={32} />
        </li>
        {pin_source === 'first_use' && (
          <li>
            The agent trusted this orchestrator on first use. If another host could have answered instead, check the
            machine for changes, and connect it again with <code className="font-mono text-xs">--orchestrator-key</code>
            .
          </li>
        )}
      </ol>
    </Callout>
  );
}
