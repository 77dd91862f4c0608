import type { Operator } from '@muster/protocol/http';

/**
 * Who is signed in, in this tab. The token is nowhere but here, in memory: a page that is loaded anew signs in anew, and
 * nothing that is stored can be stolen. Before it ends it is changed for a fresh one. Once it has ended all the same,
 * requests wait: whoever signs in again goes on where they were, and nothing that was typed is lost.
 */

export type Person = Pick<Operator, 'operator_id' | 'username' | 'role'>;

export type SessionState =
  | { readonly status: 'signed_out'; readonly why: 'new' | 'left' }
  | { readonly status: 'live'; readonly person: Person }
  /** What is on the page stays there; requests wait for the next sign-in. */
  | { readonly status: 'expired'; readonly person: Person };

export interface Token {
  readonly token: string;
  /** Unix seconds. */
  readonly expires_at: number;
}

/** What whoever signs in is given. */
export interface SignedIn extends Token {
  readonly operator: Person;
}

/** What the session asks of the orchestrator, with the token to send. */
export interface SessionCalls {
  renew(token: string): Promise<Token>;
  logout(token: string): Promise<void>;
}

export interface SessionParts {
  readonly calls: SessionCalls;
  /** Unix milliseconds, by the clock that `expires_at` is of. */
  readonly now: () => number;
  /** Calls back after so many milliseconds; what it gives back calls that off. */
  readonly after: (ms: number, act: () => void) => () => void;
  /** True for an error that says that the token is not live, rather than that nobody answered. */
  readonly isRefusal: (error: unknown) => boolean;
}

/** Thrown to requests that waited for a sign-in when somebody else signed in, or nobody did. */
export class SessionEnded extends Error {
  constructor() {
    super('the session ended before this was sent');
    this.name = 'SessionEnded';
  }
}

/** A renewal that found nobody is tried again after so long; none comes sooner after another. */
const retryMs = 10_000;
/** So often it is looked whether it is time: a timer stands still while a laptop sleeps, and a token does not. */
const lookMs = 60_000;

export function createSession({ calls, now, after, isRefusal }: SessionParts) {
  let state: SessionState = { status: 'signed_out', why: 'new' };
  let held: Token | null = null;
  let renewing: { readonly token: string; readonly over: Promise<void> } | null = null;
  /** What was held since this person signed in. Nothing that was sent with another goes out again. */
  const own = new Set<string>();
  let departures = 0;
  let callOff = () => {};
  const listeners = new Set<() => void>();
  const forgetters = new Set<() => void>();
  const waiting = new Set<{ resolve: (token: string) => void; reject: (error: Error) => void }>();

  const become = (next: SessionState) => {
    state = next;
    for (const listener of listeners) listener();
  };

  const expire = () => {
    callOff();
    held = null;
    if (state.status === 'live') become({ status: 'expired', person: state.person });
  };

  const forget = () => {
    own.clear();
    for (const { reject } of waiting) reject(new SessionEnded());
    waiting.clear();
    for (const forgetter of forgetters) forgetter();
  };

  /** At three quarters of its life a token is changed for a fresh one. */
  const hold = (token: Token) => {
    held = token;
    own.add(token.token);
    renewAt(now() + Math.max((token.expires_at * 1000 - now()) * 0.75, retryMs));
  };
  const renewAt = (due: number) => {
    callOff();
    const left = due - now();
    callOff = after(Math.max(0, Math.min(left, lookMs)), () => (now() >= due ? renewNow() : renewAt(due)));
  };
  // Whether it has ended already is not for the clock of a browser to say.
  const renewNow = () => {
    const old = held;
    if (old === null) return;
    const over = calls.renew(old.token).then(
      (fresh) => {
        // Meanwhile the person may have signed out, or in again.
        if (held === old) hold(fresh);
        else end(fresh);
      },
      (error: unknown) => {
        if (held !== old) return;
        if (isRefusal(error)) expire();
        else renewAt(now() + retryMs);
      },
    );
    const mine = { token: old.token, over };
    renewing = mine;
    void over.finally(() => {
      if (renewing === mine) renewing = null;
    });
  };
  const token = (): Promise<string | null> => {
    if (held !== null) return Promise.resolve(held.token);
    if (state.status !== 'expired') return Promise.resolve(null);
    return new Promise((resolve, reject) => waiting.add({ resolve, reject }));
  };

  const end = (unused: Token): void => void calls.logout(unused.token).catch(() => {});

  return {
    state: () => state,
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Calls back before anybody else sees the page: what is kept of one person is not another's. */
    onForget(forgetter: () => void): void {
      forgetters.add(forgetter);
    },
    /**
     * Begins, or goes on after a session that expired. Ends the session that it replaces.
     * @throws SessionEnded when it was given up meanwhile
     */
    async begin(signIn: SignedIn | Promise<SignedIn>): Promise<void> {
      const seen = departures;
      const { operator: person, ...fresh } = await signIn;
      if (seen !== departures) {
        end(fresh);
        throw new SessionEnded();
      }
      if (held !== null) end(held);
      const same = state.status !== 'signed_out' && state.person.operator_id === person.operator_id;
      if (!same) forget();
      hold(fresh);
      become({ status: 'live', person });
      for (const { resolve } of waiting) resolve(fresh.token);
      waiting.clear();
    },
    /** Ends at the orchestrator a session that does not begin here. */
    end,
    /** The token to send; once it has ended, the next one. Null while nobody is signed in. */
    token,
    /**
     * The orchestrator refused this token: the one to send in its place.
     * @throws SessionEnded when it was somebody else's
     */
    async tokenAfter(refused: string): Promise<string | null> {
      // A renewal ends the old token before its answer is here.
      if (renewing?.token === refused) await renewing.over;
      if (!own.has(refused)) throw new SessionEnded();
      if (held?.token === refused) expire();
      return token();
    },
    async leave(): Promise<void> {
      const last = held;
      departures++;
      callOff();
      held = null;
      forget();
      become({ status: 'signed_out', why: 'left' });
      if (last !== null) await calls.logout(last.token).catch(() => {});
    },
  };
}
