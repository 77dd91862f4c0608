/** Keeps the token of a sign-in session in memory and renews it before it expires. */

export interface Token {
  readonly token: string;
  /** Unix seconds. */
  readonly expires_at: number;
}

export interface RenewalParts {
  readonly calls: {
    renew(token: string): Promise<Token>;
    /** Revokes an unused token. */
    end(unused: Token): void;
  };
  /** Unix milliseconds by the orchestrator's clock, which also sets `expires_at`. */
  readonly now: () => number;
  /** Calls `act` after `ms` milliseconds. The returned function cancels the call. */
  readonly after: (ms: number, act: () => void) => () => void;
  /** Reports whether the orchestrator refused the token. Returns false if no response arrived. */
  readonly isRefusal: (error: unknown) => boolean;
}

/** Minimum time between renewals. */
const retryMs = 10_000;
/**
 * Maximum delay of a timer. Timers stop while a laptop is asleep, but tokens still expire, so the clock is checked at
 * this interval.
 */
const checkMs = 60_000;

export interface RenewalEvents {
  onRenewed(token: Token): void;
  /** Called when the orchestrator refuses to renew the current token. */
  onRefused(): void;
}

export function createTokenRenewal(
  { calls, now, after, isRefusal }: RenewalParts,
  { onRenewed, onRefused }: RenewalEvents,
) {
  let current: Token | null = null;
  let renewing: { readonly token: string; readonly done: Promise<void> } | null = null;
  let cancel = () => {};

  const renewAt = (due: number) => {
    cancel();
    const left = due - now();
    cancel = after(Math.max(0, Math.min(left, checkMs)), () => (now() >= due ? renewNow() : renewAt(due)));
  };
  /** Schedules the renewal at three quarters of the token's lifetime. */
  const hold = (token: Token) => {
    current = token;
    renewAt(now() + Math.max((token.expires_at * 1000 - now()) * 0.75, retryMs));
  };
  // Renews a token even if it seems to have expired: the browser's clock may be wrong, so only the orchestrator
  // decides.
  const renewNow = () => {
    const old = current;
    if (old === null) return;
    const done = calls.renew(old.token).then(
      (fresh) => {
        // The operator may have signed out, or signed in again, during the renewal.
        if (current !== old) return calls.end(fresh);
        hold(fresh);
        onRenewed(fresh);
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

  return {
    hold,
    current: () => current,
    /**
     * Stops renewing the current token and removes it from memory.
     * @returns the token, or null if there is none
     */
    drop(): Token | null {
      cancel();
      const last = current;
      current = null;
      return last;
    },
    /** Returns the pending renewal of this token, or null if there is none. */
    pending: (token: string): Promise<void> | null => (renewing?.token === token ? renewing.done : null),
  };
}
