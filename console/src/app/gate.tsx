import { Navigate, useLocation } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { loadCode } from '../api/live/load-code.ts';
import { useSession } from '../api/sign-in/use-session.ts';
import { Shell } from './shell.tsx';
import { useLinkedSignIn } from './use-linked-sign-in.ts';

const load = () => loadCode(() => import('./session-dialogs.tsx'));
const ExpiredSessionDialog = lazy(async () => ({ default: (await load()).ExpiredSessionDialog }));
const SignInLinkDialog = lazy(async () => ({ default: (await load()).SignInLinkDialog }));

/**
 * Shows the pages to a signed-in operator. If the session expires, the sign-in form opens over the page, so that unsaved
 * input is kept.
 */
export function Gate() {
  const state = useSession();
  const isLinked = useLinkedSignIn() !== null;
  const { pathname } = useLocation();
  if (state.status === 'signed_out') return null;
  if (pathname === '/login') return <Navigate to="/" replace />;
  return (
    <>
      {/* Remounts the pages when the operator changes, so that one operator never sees another's unsaved input. */}
      <Shell key={state.person.operator_id} />
      <Suspense>
        {state.status === 'expired' ? (
          <ExpiredSessionDialog person={state.person} other={state.other} />
        ) : (
          isLinked && <SignInLinkDialog person={state.person} />
        )}
      </Suspense>
    </>
  );
}
