import { session } from '../api/client.ts';
import type { Person } from '../api/sign-in/session.ts';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog/dialog.tsx';
import { Problem } from '../parts/states.tsx';
import { Text, visibleText } from '../parts/text.tsx';
import { linkedSignIn } from './sign-in-link.ts';
import { SignInForm } from './sign-in-page.tsx';
import { useLinkedSignIn } from './use-linked-sign-in.ts';

/**
 * Opens over the page when the session expires.
 * @param other the operator who signed in in another tab, which ended the session
 */
export function ExpiredSessionDialog({ person, other }: { readonly person: Person; readonly other: Person | null }) {
  return (
    <Dialog
      open
      persistent
      onOpenChange={() => {}}
      title={other === null ? 'Your session has ended' : `${visibleText(other.username)} signed in`}
      description={
        <>
          {other !== null && 'This happened in another tab, and ended your session. '}
          Sign in again as <Text text={person.username} /> to continue; your input is kept. If another operator signs
          in, it is discarded.
        </>
      }
      footer={
        other === null ? (
          <Button look="quiet" onClick={() => void session.leave()}>
            Discard and sign out
          </Button>
        ) : (
          <Button onClick={session.continueAsOther}>{`Continue as ${visibleText(other.username)}`}</Button>
        )
      }
    >
      <SignInForm />
    </Dialog>
  );
}

/**
 * Asks for confirmation if a signed-in operator opens a sign-in link. The current session continues until the operator
 * agrees.
 */
export function SignInLinkDialog({ person }: { readonly person: Person }) {
  const linked = useLinkedSignIn();
  if (linked === null || linked.status === 'redeeming') return null;
  const close = (open: boolean) => !open && linkedSignIn.dismiss();
  if (linked.status === 'failed')
    return (
      <Dialog open onOpenChange={close} title="Sign-in with this link failed">
        <div className="space-y-3">
          <Problem error={linked.error} />
          <p className="text-sm">
            You are still signed in as <Text text={person.username} />.
          </p>
        </div>
      </Dialog>
    );
  const { operator_id, username, role } = linked.pending.person;
  const isBeginning = linked.status === 'beginning';
  return (
    <Dialog
      open
      persistent
      onOpenChange={close}
      title={`Sign in as ${username}?`}
      description={
        <>
          You are signed in as <Text text={person.username} />. The link you opened signs you in as the {role}{' '}
          <Text text={username} />, and ends your session.{' '}
          {operator_id === person.operator_id ? '' : 'Unsaved changes are lost. '}
          Continue only if you requested the link yourself.
        </>
      }
      footer={
        <>
          <Button disabled={isBeginning} onClick={linkedSignIn.dismiss}>
            Cancel
          </Button>
          <Button look="primary" busy={isBeginning} onClick={() => void linkedSignIn.accept()}>
            Sign in
          </Button>
        </>
      }
    />
  );
}
