import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useEffect } from 'react';
import { serverClock } from '../api/client.ts';
import { clearDrafts } from '../api/drafts/draft-store.ts';
import { queryClient } from '../api/query-client.ts';
import { useSession } from '../api/sign-in/use-session.ts';
import { dismissConfirmations, Toaster } from '../parts/dialog/toast.tsx';
import { setClock } from '../parts/time.tsx';
import { preloadPages } from './lazy-page.tsx';
import { router } from './routes.tsx';
import { removeOutlines } from './shell.tsx';
import { SignInPage } from './sign-in-page.tsx';
import { useShownTheme } from './theme.ts';

setClock(serverClock.now);
router.subscribe('onBeforeNavigate', ({ pathChanged }) => {
  if (pathChanged) dismissConfirmations();
});
// Loads the page's code during the sign-in.
void router.load();

/** Delay in milliseconds before other pages are preloaded, so that the current page loads its data first. */
const preloadDelayMs = 4_000;

/** Shows the sign-in page until an operator signs in. The sign-in page does not wait for the code of other pages. */
export function App() {
  const state = useSession();
  const { status } = state;
  const hasLeft = state.status === 'signed_out' && state.why === 'left';
  useEffect(() => {
    if (status === 'signed_out') removeOutlines();
    if (hasLeft) void clearDrafts();
    if (status !== 'live') return;
    const abort = new AbortController();
    const timer = window.setTimeout(() => void preloadPages(abort.signal), preloadDelayMs);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [status, hasLeft]);
  return (
    <QueryClientProvider client={queryClient}>
      {status === 'signed_out' ? <SignInPage /> : <RouterProvider router={router} />}
      <Toaster theme={useShownTheme()} />
    </QueryClientProvider>
  );
}
