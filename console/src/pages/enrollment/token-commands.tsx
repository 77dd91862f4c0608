import type { AnswerOf, createEnrolmentToken } from '@muster/protocol/http';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Text } from '../../parts/text.tsx';
import { absoluteTime } from '../../parts/time.tsx';

/**
 * Shows the commands that enroll a machine, and what the token permits.
 * @param isKept whether the token stays valid after the dialog closes, even if the command was not copied
 * @param onCopy called when the operator copies a command
 */
export function TokenCommands({
  token,
  isKept,
  onCopy,
}: {
  readonly token: AnswerOf<typeof createEnrolmentToken>;
  readonly isKept: boolean;
  readonly onCopy: () => void;
}) {
  const installs = token.command !== token.connect_command;
  const isOne = token.uses_left === 1;
  return (
    // The handler also detects text that the operator selects and copies.
    <div className="space-y-4" onCopy={onCopy}>
      <div className="space-y-1 text-muted text-sm">
        <p>Run this command as root on the machine. The token is shown only once.</p>
        <p>
          It enrolls {isOne ? '1 machine' : `up to ${token.uses_left} machines`} until{' '}
          {absoluteTime(token.expires_at * 1000)}.{' '}
          {token.approve
            ? `The agent is approved automatically${isOne ? '' : ' on each'}.`
            : `An operator approves ${isOne ? 'the agent' : 'each agent'}.`}
          {!isKept && ' If you close this dialog before you copy the command, the token is revoked.'}
        </p>
      </div>
      {token.note !== null && (
        <Callout tone="info" title={installs ? 'Check the address' : 'The agent must already be installed'}>
          <Text text={token.note} maxLength={500} />
        </Callout>
      )}
      <Code look="primary" text={token.command} onCopy={onCopy} />
      {installs && (
        <>
          <p className="text-muted text-sm">If the agent is already installed:</p>
          <Code text={token.connect_command} onCopy={onCopy} />
        </>
      )}
    </div>
  );
}
