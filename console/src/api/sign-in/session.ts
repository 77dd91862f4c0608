import type { Operator } from '@muster/protocol/http';
import { createTokenRenewal, type RenewalParts, type Token } from './token-renewal.ts';

export type { Token } from './token-renewal.ts';

/**
 * The sign-in session of this tab. The token is only in memory, so nothing stored can be stolen; a reload requires another
 * sign-in. After the session expires, requests wait until the operator signs in again, so that no input is lost.
 */

export type Person = Pick<Operator, 'operator_id' | 'username' | 'role'>;

export type SessionState =
  | { readonly status: 'signed_out'; readonly why: 'new' | 'left' }
  | { readonly status: 'live'; readonly person: Person }
  /** The page remains unchanged, and requests wait for the next sign-in. */
  | { readonly status: 'expired'; readonly person: Person };

/** The answer to a sign-in. */
export interface SignedIn extends Token {
  readonly operator: Person;
}

/** Rejects requests that waited for a sign-in when another operator signs in, or the operator signs out. */
export class SessionEnded extends Error {
  constructor() {
    super('the session ended before this was sent');
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
    /** Calls `forgetter` before another operator sees the page, to clear the data of the previous one. */
    onForget(forgetter: () => void): void {
      forgetters.add(forgetter);
    },
    /**
     * Begins a session, or resumes an expired one. Ends the session that it replaces.
     * @throws SessionEnded if the operator signed out in the meantime
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
    /** Ends a session at the orchestrator that does not begin here. */
    end: renewal.end,
    /** The token to send. Waits for a sign-in if the session has expired; null after a sign-out. */
    token,
    /**
     * The token to send after the orchestrator refused this one.
     * @throws SessionEnded if the refused token belonged to another operator
     */
    async tokenAfter(refused: string): Promise<string | null> {
      // A renewal ends the old token before its answer arrives.
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
