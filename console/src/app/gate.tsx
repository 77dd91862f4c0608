import { Navigate, useLocation } from '@tanstack/react-router';
import { useSession } from '../api/sign-in/use-session.ts';
import { Shell } from './shell.tsx';
import { LinkOver, SignInOver, SignInPage } from './sign-in-page.tsx';

/**
 * Nothing is shown before somebody has signed in. When the session ends later, the page stays as it is, and one signs in
 * over it: what was typed is still there.
 */
export function Gate() {
  const state = useSession();
  const { pathname } = useLocation();
  if (state.status === 'signed_out') return <SignInPage />;
  if (pathname === '/login') return <Navigate to="/" replace />;
  return (
    <>
      {/* Somebody else begins anew: nothing that one person typed is another's to see. */}
      <Shell key={state.person.operator_id} />
      {state.status === 'expired' ? <SignInOver person={state.person} /> : <LinkOver person={state.person} />}
    </>
  );
}
