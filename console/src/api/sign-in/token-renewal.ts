/** Keeps the token of a sign-in session in memory and renews it before it expires. */

export interface Token {
  readonly token: string;
  /** Unix seconds. */
  readonly expires_at: number;
}

/** The orchestrator's calls for a session, with the token to send. */
export interface SessionCalls {
  renew(token: string): Promise<Token>;
  logout(token: string): Promise<void>;
}

export interface RenewalParts {
  readonly calls: SessionCalls;
  /** Unix milliseconds by the clock of `expires_at`. */
  readonly now: () => number;
  /** Calls `act` after `ms` milliseconds. The returned function cancels it. */
  readonly after: (ms: number, act: () => void) => () => void;
  /** Whether an error means that the token has ended, rather than that there was no answer. */
  readonly isRefusal: (error: unknown) => boolean;
}

/** The minimum time between renewals. */
const retryMs = 10_000;
/** Timers stop while a laptop sleeps and tokens do not, so the clock is checked at this interval. */
const checkMs = 60_000;

/** @param onRefused called when the orchestrator refuses to renew the current token */
export function createTokenRenewal({ calls, now, after, isRefusal }: RenewalParts, onRefused: () => void) {
  let current: Token | null = null;
  let renewing: { readonly token: string; readonly done: Promise<void> } | null = null;
  /** Tokens of the current operator. */
  const own = new Set<string>();
  let cancel = () => {};

  const renewAt = (due: number) => {
    cancel();
    const left = due - now();
    cancel = after(Math.max(0, Math.min(left, checkMs)), () => (now() >= due ? renewNow() : renewAt(due)));
  };
  /** Renews at three quarters of the lifetime. */
  const hold = (token: Token) => {
    current = token;
    own.add(token.token);
    renewAt(now() + Math.max((token.expires_at * 1000 - now()) * 0.75, retryMs));
  };
  // Only the orchestrator decides whether a token has expired: the browser's clock may be wrong.
  const renewNow = () => {
    const old = current;
    if (old === null) return;
    const done = calls.renew(old.token).then(
      (fresh) => {
        // The operator may have signed out or in again in the meantime.
        if (current === old) hold(fresh);
        else end(fresh);
      },
      (error: unknown) => {
        if (current !== old) return;
        if (isRefusal(error)) onRefused();
        else renewAt(now() + retryMs);
      },
    );
    const mine = { token: old.token, done };
    renewing = mine;
    void done.finally(() => {
      if (renewing === mine) renewing = null;
    });
  };
  /** Ends a token at the orchestrator. */
  const end = (unused: Token): void => void calls.logout(unused.token).catch(() => {});

  return {
    ...{ hold, end },
    current: () => current,
    /** Forgets the current token and stops renewing it. @returns it */
    drop(): Token | null {
      cancel();
      const last = current;
      current = null;
      return last;
    },
    owns: (token: string) => own.has(token),
    /** Disowns all tokens, when the operator changes. */
    disown: () => own.clear(),
    /** The pending renewal of this token; null if there is none. */
    pending: (token: string): Promise<void> | null => (renewing?.token === token ? renewing.done : null),
  };
}
