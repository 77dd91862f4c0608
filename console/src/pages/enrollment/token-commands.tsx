import type { AnswerOf, createEnrolmentToken } from '@muster/protocol/http';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Text } from '../../parts/text.tsx';

export function TokenCommands({ token }: { readonly token: AnswerOf<typeof createEnrolmentToken> }) {
  const installs = token.command !== token.connect_command;
  return (
    <div className="space-y-4">
      <p className="text-muted text-sm">Run this command as root on the machine. The token is shown only once.</p>
      {token.note !== null && (
        <Callout tone="info" title={installs ? 'Check the address' : 'The agent must already be installed'}>
          <Text text={token.note} maxLength={500} />
        </Callout>
      )}
      <Code text={token.command} />
      {installs && (
        <>
          <p className="text-muted text-sm">If the agent is already installed:</p>
          <Code text={token.connect_command} />
        </>
      )}
    </div>
  );
}
