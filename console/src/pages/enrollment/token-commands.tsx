import type { AnswerOf, createEnrolmentToken } from '@muster/protocol/http';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { absoluteTime } from '../../parts/time.tsx';
import { CodeText } from '../kinds/code-text.tsx';
import { Disclosure } from './disclosure.tsx';

/** Shows the command that enrolls a machine, and behind a disclosure what its token permits. */
export function TokenCommands({ token }: { readonly token: AnswerOf<typeof createEnrolmentToken> }) {
  const installs = token.command !== token.connect_command;
  const isOne = token.uses_left === 1;
  return (
    <div className="space-y-3">
      <p className="text-sm">Run this command as root on {isOne ? 'the machine' : 'each machine'}:</p>
      <Code look="primary" text={token.command} />
      {token.note !== null && (
        <Callout tone="info" title={installs ? 'Check the address' : 'The agent must already be installed'}>
          <CodeText text={token.note} />
        </Callout>
      )}
      <Disclosure label={installs ? 'Details, and the command for an installed agent' : 'Details'}>
        <p className="text-muted">
          The token is shown only once. It enrolls {isOne ? '1 machine' : `up to ${token.uses_left} machines`} until{' '}
          {absoluteTime(token.expires_at * 1000)}.{' '}
          {token.approve
            ? `The agent is approved automatically${isOne ? '' : ' on each'}.`
            : `An operator approves ${isOne ? 'the agent' : 'each agent'}.`}
        </p>
        {installs && (
          <>
            <p className="text-muted">If the agent is already installed:</p>
            <Code text={token.connect_command} />
          </>
        )}
      </Disclosure>
    </div>
  );
}
