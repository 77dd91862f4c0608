import { type PendingSignIn, redeemCode } from '../api/sign-in/sign-in.ts';

/**
 * Handles `muster web-login` links. The code is in the URL fragment, which browsers do not send to servers. If only the
 * fragment differs from the URL of an open tab, the browser does not reload the page.
 */

export type LinkedSignIn =
  | { readonly status: 'redeeming' }
  | { readonly status: 'pending'; readonly pending: PendingSignIn }
  /** The operator accepted; the session has not begun yet. */
  | { readonly status: 'beginning'; readonly pending: PendingSignIn }
  | { readonly status: 'failed'; readonly error: unknown };

let current: LinkedSignIn | null = null;
const listeners = new Set<() => void>();

function setState(next: LinkedSignIn | null): void {
  current = next;
  for (const listener of listeners) listener();
}

/** Reads the code and removes it from the URL before other code can read it. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

/**
 * Redeems the code in the URL, if any. Refuses the sign-in from an earlier link that the operator has not confirmed.
 */
async function redeem(): Promise<void> {
  const code = takeCode();
  if (code === null) return;
  if (current?.status === 'pending') current.pending.refuse();
  const redeeming = { status: 'redeeming' } as const;
  setState(redeeming);
  try {
    const pending = await redeemCode(code);
    if (current === redeeming) setState({ status: 'pending', pending });
    else pending.refuse();
  } catch (error) {
    if (current === redeeming) setState({ status: 'failed', error });
  }
}

/**
 * Redeems the code in the current URL, and the code in every link that is opened later. Call this function before the
 * first render.
 */
export function followSignInLinks(): void {
  void redeem();
  window.addEventListener('hashchange', () => void redeem());
}

/**
 * The sign-in from the latest link; null if there was none, after its session began, or after the operator dismissed
 * it.
 */
export const linkedSignIn = {
  state: (): LinkedSignIn | null => current,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  /** Starts the session of the sign-in that waits for confirmation. */
  async accept(): Promise<void> {
    if (current?.status !== 'pending') return;
    const { pending } = current;
    const beginning = { status: 'beginning', pending } as const;
    setState(beginning);
    try {
      await pending.begin();
      if (linkedSignIn.state() === beginning) setState(null);
    } catch (error) {
      if (linkedSignIn.state() === beginning) setState({ status: 'failed', error });
    }
  },
  /** Refuses the sign-in that waits for confirmation, or clears the error. A session that is beginning continues. */
  dismiss(): void {
    if (current?.status === 'beginning') return;
    if (current?.status === 'pending') current.pending.refuse();
    if (current !== null) setState(null);
  },
};
