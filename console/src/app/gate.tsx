import { Navigate, useLocation } from '@tanstack/react-router';
import { useSession } from '../api/sign-in/use-session.ts';
import { Shell } from './shell.tsx';
import { ExpiredSessionDialog, SignInLinkDialog } from './sign-in-page.tsx';

/**
 * Shows the pages to a signed-in operator. If the session expires, the sign-in form opens over the page, so that unsaved
 * input is kept.
 */
export function Gate() {
  const state = useSession();
  const { pathname } = useLocation();
  if (state.status === 'signed_out') return null;
  if (pathname === '/login') return <Navigate to="/" replace />;
  return (
    <>
      {/* Remounts the pages when the operator changes, so that one operator never sees another's unsaved input. */}
      <Shell key={state.person.operator_id} />
      {state.status === 'expired' ? (
        <ExpiredSessionDialog person={state.person} other={state.other} />
      ) : (
        <SignInLinkDialog person={state.person} />
      )}
    </>
  );
}
