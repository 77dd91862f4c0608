import { type HeldSignIn, redeemCode } from '../api/sign-in/sign-in.ts';

/**
 * The link of `muster web-login`: its code is in the fragment of the address, which browsers send to no server. A browser
 * that opens the link in a tab of this console does not load the page again where only the fragment differs.
 */

export type LinkedSignIn =
  | { readonly status: 'redeeming' }
  | { readonly status: 'held'; readonly held: HeldSignIn }
  | { readonly status: 'failed'; readonly error: unknown };

let current: LinkedSignIn | null = null;
const listeners = new Set<() => void>();

function become(next: LinkedSignIn | null): void {
  current = next;
  for (const listener of listeners) listener();
}

/** Removes the code from the address before anything else sees it. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

/** Redeems the code of the address, if there is one. A sign-in that an earlier link left unanswered is refused. */
async function redeem(): Promise<void> {
  const code = takeCode();
  if (code === null) return;
  if (current?.status === 'held') current.held.refuse();
  const redeeming = { status: 'redeeming' } as const;
  become(redeeming);
  try {
    const held = await redeemCode(code);
    if (current === redeeming) become({ status: 'held', held });
    else held.refuse();
  } catch (error) {
    if (current === redeeming) become({ status: 'failed', error });
  }
}

/** Redeems the code of the link that led here, before anything is drawn, and that of each link opened here later. */
export function followSignInLinks(): void {
  void redeem();
  window.addEventListener('hashchange', () => void redeem());
}

/** What the last link led to; null when it was answered, or there was none. */
export const linkedSignIn = {
  state: (): LinkedSignIn | null => current,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  /** Begins the session that waits for a person to agree. */
  async accept(): Promise<void> {
    if (current?.status !== 'held') return;
    const { held } = current;
    become(null);
    await held.begin();
  },
  /** Ends the session that waits, or forgets what went wrong. */
  dismiss(): void {
    if (current?.status === 'held') current.held.refuse();
    if (current !== null) become(null);
  },
};
