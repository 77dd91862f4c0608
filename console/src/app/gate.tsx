import { Navigate, useLocation } from '@tanstack/react-router';
import { useSession } from '../api/sign-in/use-session.ts';
import { Shell } from './shell.tsx';
import { ExpiredSessionDialog, SignInLinkDialog, SignInPage } from './sign-in-page.tsx';

/**
 * Shows the sign-in page until an operator has signed in. When the session expires later, the sign-in form opens over the
 * page, so that unsaved input is kept.
 */
export function Gate() {
  const state = useSession();
  const { pathname } = useLocation();
  if (state.status === 'signed_out') return <SignInPage />;
  if (pathname === '/login') return <Navigate to="/" replace />;
  return (
    <>
      {/* Remounts for another operator: unsaved input of one must not be visible to the other. */}
      <Shell key={state.person.operator_id} />
      {state.status === 'expired' ? (
        <ExpiredSessionDialog person={state.person} />
      ) : (
        <SignInLinkDialog person={state.person} />
      )}
    </>
  );
}
