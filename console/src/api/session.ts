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

/** What the session asks of the orchestrator, with the token to send. */
export interface SessionCalls {
  person(token: string): Promise<Person>;
  renew(token: string): Promise<Token>;
  logout(token: string): Promise<void>;
}

export interface SessionParts {
  readonly calls: SessionCalls;
  /** Unix milliseconds. */
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

/** A renewal that found nobody is tried again after so long. */
const retryMs = 10_000;
/** The longest that a browser's timer can wait. */
const longestTimerMs = 2 ** 31 - 1;

export function createSession({ calls, now, after, isRefusal }: SessionParts) {
  let state: SessionState = { status: 'signed_out', why: 'new' };
  let held: Token | null = null;
  let callOff = () => {};
  const listeners = new Set<() => void>();
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

  const dropWaiting = () => {
    for (const { reject } of waiting) reject(new SessionEnded());
    waiting.clear();
  };

  /** At three quarters of its life a token is changed for a fresh one. */
  const renewLater = (token: Token) => {
    const left = token.expires_at * 1000 - now();
    plan(Math.min(Math.max(left * 0.75, 0), longestTimerMs));
  };
  const plan = (ms: number) => {
    callOff();
    callOff = after(ms, () => void renewNow());
  };
  const renewNow = async () => {
    const old = held;
    if (old === null) return;
    if (old.expires_at * 1000 <= now()) return expire();
    try {
      const fresh = await calls.renew(old.token);
      // Meanwhile somebody may have signed out.
      if (held !== old) return;
      held = fresh;
      renewLater(fresh);
    } catch (error) {
      if (held !== old) return;
      if (isRefusal(error)) expire();
      else plan(retryMs);
    }
  };

  return {
    state: () => state,
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /**
     * Begins, or goes on after a session that expired.
     * @param forget called before anything is shown to another person than before: what is kept of the former must go
     */
    async begin(token: Token, forget: () => void): Promise<void> {
      const person = await calls.person(token.token);
      const same = state.status === 'expired' && state.person.operator_id === person.operator_id;
      held = token;
      renewLater(token);
      if (!same) {
        dropWaiting();
        forget();
      }
      become({ status: 'live', person });
      for (const { resolve } of waiting) resolve(token.token);
      waiting.clear();
    },
    /** The token to send; once it has ended, the next one. Null while nobody is signed in. */
    token(): Promise<string | null> {
      if (held !== null && held.expires_at * 1000 <= now()) expire();
      if (held !== null) return Promise.resolve(held.token);
      if (state.status !== 'expired') return Promise.resolve(null);
      return new Promise((resolve, reject) => waiting.add({ resolve, reject }));
    },
    /** The orchestrator refused this token. One that has been changed for another since says nothing of that one. */
    refused(token: string): void {
      if (held?.token === token) expire();
    },
    async leave(): Promise<void> {
      const last = held;
      callOff();
      held = null;
      dropWaiting();
      become({ status: 'signed_out', why: 'left' });
      if (last !== null) await calls.logout(last.token).catch(() => {});
    },
  };
}
