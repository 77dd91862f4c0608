import { type HeldSignIn, redeemCode } from '../api/sign-in.ts';

/** The link of `muster web-login`: its code is in the fragment of the address, which no server is ever told. */

/** Taken once, and gone from the address at once. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

let started: Promise<HeldSignIn> | null = null;

/** Redeems the code of the link that led here, if one did: before anything is drawn, as the question waits for it. */
export function startSignIn(): void {
  const code = takeCode();
  if (code === null) return;
  started = redeemCode(code);
  // The form says what went wrong with it.
  started.catch(() => {});
}

/** What was started, for the first who asks. */
export function startedSignIn(): Promise<HeldSignIn> | null {
  const mine = started;
  started = null;
  return mine;
}
