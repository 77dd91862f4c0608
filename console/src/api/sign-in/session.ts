import type { Operator } from '@muster/protocol/http';
import { createTokenRenewal, type RenewalParts, type Token } from './token-renewal.ts';

export type { Token } from './token-renewal.ts';

/**
 * The sign-in session of this browser tab. The token is only in memory: it cannot be stolen from storage, and a reload
 * requires another sign-in. After the session expires, requests wait until the operator signs in again, so that no
 * input is lost.
 */

export type Person = Pick<Operator, 'operator_id' | 'username' | 'role'>;

export type SessionState =
  | { readonly status: 'signed_out'; readonly why: 'new' | 'left' }
  | { readonly status: 'live'; readonly person: Person }
  /** The page stays as it was, and requests wait for the next sign-in. */
  | { readonly status: 'expired'; readonly person: Person };

export interface SignedIn extends Token {
  readonly operator: Person;
}

/** Rejects a request that waited for a sign-in when the operator signs out or another operator signs in. */
export class SessionEnded extends Error {
  constructor() {
    super('the session ended before the request was sent');
    this.name = 'SessionEnded';
  }
}

export function createSession(parts: RenewalParts) {
  let state: SessionState = { status: 'signed_out', why: 'new' };
  let signOuts = 0;
  const listeners = new Set<() => void>();
  const forgetters = new Set<() => void>();
  const waiting = new Set<{ resolve: (token: string) => void; reject: (error: Error) => void }>();

  const become = (next: SessionState) => {
    state = next;
    for (const listener of listeners) listener();
  };
  const expire = () => {
    renewal.drop();
    if (state.status === 'live') become({ status: 'expired', person: state.person });
  };
  const renewal = createTokenRenewal(parts, expire);
  const forget = () => {
    renewal.disown();
    for (const { reject } of waiting) reject(new SessionEnded());
    waiting.clear();
    for (const forgetter of forgetters) forgetter();
  };
  const token = (): Promise<string | null> => {
    const current = renewal.current();
    if (current !== null) return Promise.resolve(current.token);
    if (state.status !== 'expired') return Promise.resolve(null);
    return new Promise((resolve, reject) => waiting.add({ resolve, reject }));
  };

  return {
    state: () => state,
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /**
     * Registers a function that is called when the operator changes, before the page shows the new state. It must clear
     * the previous operator's data.
     */
    onForget(forgetter: () => void): void {
      forgetters.add(forgetter);
    },
    /**
     * Starts a session or resumes an expired one. Revokes the session that it replaces.
     * @throws SessionEnded if the operator signed out while the sign-in was pending
     */
    async begin(signIn: SignedIn | Promise<SignedIn>): Promise<void> {
      const signOutsBefore = signOuts;
      const { operator: person, ...fresh } = await signIn;
      if (signOuts !== signOutsBefore) {
        renewal.end(fresh);
        throw new SessionEnded();
      }
      const replaced = renewal.current();
      if (replaced !== null) renewal.end(replaced);
      const isSamePerson = state.status !== 'signed_out' && state.person.operator_id === person.operator_id;
      if (!isSamePerson) forget();
      renewal.hold(fresh);
      become({ status: 'live', person });
      for (const { resolve } of waiting) resolve(fresh.token);
      waiting.clear();
    },
    /** Revokes the token from a sign-in that the operator refused. */
    end: renewal.end,
    /** Returns the token to send, or null after a sign-out. If the session has expired, waits for a sign-in. */
    token,
    /**
     * Returns the token to send after the orchestrator refused `refused`.
     * @throws SessionEnded if `refused` belongs to another operator
     */
    async tokenAfter(refused: string): Promise<string | null> {
      // A renewal revokes the old token before its response arrives.
      const pending = renewal.pending(refused);
      if (pending !== null) await pending;
      if (!renewal.owns(refused)) throw new SessionEnded();
      if (renewal.current()?.token === refused) expire();
      return token();
    },
    async leave(): Promise<void> {
      signOuts++;
      const last = renewal.drop();
      forget();
      become({ status: 'signed_out', why: 'left' });
      if (last !== null) await parts.calls.logout(last.token).catch(() => {});
    },
  };
}
