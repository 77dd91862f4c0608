import type { Credential, Person, StoredSession } from './credential.ts';
import { isSameCredential, secretOf } from './credential.ts';
import type { SessionStorage } from './stored-session.ts';
import { createTokenRenewal, type RenewalParts, type Token } from './token-renewal.ts';

export type { Person } from './credential.ts';
export type { Token } from './token-renewal.ts';

export type SessionState =
  | { readonly status: 'signed_out'; readonly why: 'new' | 'left' }
  | { readonly status: 'live'; readonly person: Person }
  /**
   * The page remains unchanged, and requests wait for the next sign-in. `other` signed in in another tab, which ended
   * this person's session.
   */
  | { readonly status: 'expired'; readonly person: Person; readonly other: Person | null };

export interface SignedIn extends Token {
  readonly operator: Person;
}

export interface SessionParts extends Omit<RenewalParts, 'calls'> {
  readonly calls: {
    renew(token: string): Promise<Token>;
    logout(credential: Credential): Promise<void>;
    /** Exchanges a token for the cookie of a console session. Returns null if the browser cannot use it. */
    openConsole(token: string): Promise<Credential | null>;
  };
  readonly storage: SessionStorage;
}

/** Rejects a request that waited for a sign-in when the operator signs out or another operator signs in. */
export class SessionEnded extends Error {
  constructor() {
    super('the session ended before the request was sent');
    this.name = 'SessionEnded';
  }
}

/**
 * The sign-in session of this browser, which all tabs share. After it expires, requests wait until the operator signs in
 * again, so that no input is lost.
 */
export class BrowserSession {
  readonly #parts: SessionParts;
  readonly #renewal: ReturnType<typeof createTokenRenewal>;
  #state: SessionState = { status: 'signed_out', why: 'new' };
  /** The page key of the console session; null if there is none. */
  #pageKey: string | null = null;
  /** Whether the session was read from the browser's storage and the orchestrator has not accepted it yet. */
  #isProvisional = false;
  /**
   * Pending while the session is being replaced, because the orchestrator may refuse the current credential during that
   * time; otherwise null.
   */
  #replacement: Promise<void> | null = null;
  #signOuts = 0;
  readonly #listeners = new Set<() => void>();
  readonly #forgetters = new Set<() => void>();
  readonly #waiting = new Set<{ resolve: (credential: Credential) => void; reject: (error: Error) => void }>();
  /** Secrets of all credentials that the current operator has had. */
  readonly #own = new Set<string>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#renewal = createTokenRenewal(
      { ...parts, calls: { renew: parts.calls.renew, end: this.end } },
      { onRenewed: (fresh) => this.#renewed(fresh), onRefused: () => this.#expire() },
    );
  }

  readonly state = (): SessionState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Registers a function that is called when the operator changes, before the page shows the new state. It must clear
   * the previous operator's data.
   */
  onForget(forgetter: () => void): void {
    this.#forgetters.add(forgetter);
  }

  /**
   * Resumes the session after a reload or from another tab, and follows sign-ins and sign-outs in other tabs.
   */
  resume(): void {
    const { storage } = this.#parts;
    storage.subscribe((stored) => this.#follow(stored));
    const stored = storage.read();
    if (stored === null) return;
    this.#isProvisional = true;
    this.#take(stored);
  }

  /** Records that the orchestrator accepted a request's credential. */
  confirm(): void {
    this.#isProvisional = false;
  }

  /**
   * Starts a session or resumes an expired one. Revokes the session that it replaces.
   * @throws SessionEnded if the operator signed out while the sign-in was pending; the error of the exchange for a
   * console session, after which the replaced session has ended
   */
  async begin(signIn: SignedIn | Promise<SignedIn>): Promise<void> {
    const signOutsBefore = this.#signOuts;
    const { operator, ...token } = await signIn;
    const requireNoSignOut = (unused: Credential) => {
      if (this.#signOuts === signOutsBefore) return;
      void this.#logout(unused);
      throw new SessionEnded();
    };
    requireNoSignOut({ kind: 'token', ...token });
    const replacing = this.#replaceWith(operator, token, requireNoSignOut);
    const settled = replacing
      .catch(() => {})
      .finally(() => {
        if (this.#replacement === settled) this.#replacement = null;
      });
    this.#replacement = settled;
    await replacing;
  }

  async #replaceWith(person: Person, token: Token, requireNoSignOut: (unused: Credential) => void): Promise<void> {
    const { calls, storage } = this.#parts;
    const replaced = this.#held() ?? storage.read()?.credential ?? null;
    // Signs out first, because the new cookie would replace the one that this request needs.
    if (replaced !== null) await this.#logout(replaced);
    const fresh: Credential = { kind: 'token', ...token };
    const credential = await calls.openConsole(token.token).then(
      (opened) => opened ?? fresh,
      (error: unknown) => {
        void this.#logout(fresh);
        const current = this.#held();
        if (replaced !== null && current !== null && isSameCredential(current, replaced)) this.#expire();
        throw error;
      },
    );
    requireNoSignOut(credential);
    this.#isProvisional = false;
    storage.write({ person, credential });
    this.#take({ person, credential });
  }

  /** Revokes the token of a sign-in that the operator refused. */
  readonly end = (unused: Token): void => void this.#logout({ kind: 'token', ...unused });

  /**
   * Returns the credential to send, or null after a sign-out. If the session has expired, waits for a sign-in.
   * @param ready a promise to await before the credential is chosen
   * @throws SessionEnded if the operator changes in the meantime
   */
  async credential(ready?: Promise<void>): Promise<Credential | null> {
    const asking = this.#operatorId();
    await ready;
    while (this.#replacement !== null) await this.#replacement;
    if (asking !== null && asking !== this.#operatorId()) throw new SessionEnded();
    const current = this.#held();
    if (current !== null || this.#state.status !== 'expired') return current;
    return await new Promise((resolve, reject) => this.#waiting.add({ resolve, reject }));
  }

  /**
   * Returns the credential to send after the orchestrator refused `refused`.
   * @throws SessionEnded if `refused` belongs to another operator
   */
  async credentialAfter(refused: Credential): Promise<Credential | null> {
    // A renewal revokes the old token before its response arrives.
    const pending = refused.kind === 'token' ? this.#renewal.pending(refused.token) : null;
    if (pending !== null) await pending;
    if (this.#replacement !== null) await this.#replacement;
    if (!this.#own.has(secretOf(refused))) throw new SessionEnded();
    const current = this.#held();
    if (current !== null && isSameCredential(current, refused)) {
      // The event for a sign-in in another tab may arrive later.
      const stored = this.#parts.storage.read();
      if (stored === null || this.#own.has(secretOf(stored.credential))) this.#expire();
      else this.#follow(stored);
    }
    return await this.credential();
  }

  /** Continues as the operator who signed in in another tab. Discards the data of the current one. */
  readonly continueAsOther = (): void => {
    const stored = this.#parts.storage.read();
    if (stored === null) this.#signOut();
    else this.#take(stored);
  };

  /** Signs out in all tabs. @param isEnded whether the orchestrator has already ended the session */
  async leave(isEnded = false): Promise<void> {
    const last = this.#signOut();
    this.#parts.storage.clear();
    if (last !== null && !isEnded) await this.#logout(last);
  }

  #become(next: SessionState): void {
    this.#state = next;
    for (const listener of this.#listeners) listener();
  }

  #logout(credential: Credential): Promise<void> {
    return this.#parts.calls.logout(credential).catch(() => {});
  }

  #operatorId(): string | null {
    return this.#state.status === 'signed_out' ? null : this.#state.person.operator_id;
  }

  #held(): Credential | null {
    if (this.#pageKey !== null) return { kind: 'console', page_key: this.#pageKey };
    const token = this.#renewal.current();
    return token && { kind: 'token', ...token };
  }

  /** Removes the credential from memory, and returns it. */
  #drop(): Credential | null {
    const last = this.#held();
    this.#pageKey = null;
    this.#renewal.drop();
    return last;
  }

  #renewed(fresh: Token): void {
    this.#own.add(fresh.token);
    if (this.#state.status !== 'live') return;
    this.#parts.storage.write({ person: this.#state.person, credential: { kind: 'token', ...fresh } });
  }

  /** @param other the operator who signed in in another tab */
  #expire(other: Person | null = null): void {
    this.#drop();
    if (this.#state.status === 'signed_out') return;
    if (this.#isProvisional) {
      // A page that was just loaded has no unsaved input.
      this.#forget();
      this.#become({ status: 'signed_out', why: 'new' });
    } else this.#become({ status: 'expired', person: this.#state.person, other });
  }

  #forget(): void {
    this.#own.clear();
    for (const { reject } of this.#waiting) reject(new SessionEnded());
    this.#waiting.clear();
    for (const forgetter of this.#forgetters) forgetter();
  }

  /** Makes a session the current one, and sends the requests that waited for it. */
  #take({ person, credential }: StoredSession): void {
    if (this.#operatorId() !== person.operator_id) this.#forget();
    this.#drop();
    this.#own.add(secretOf(credential));
    if (credential.kind === 'console') this.#pageKey = credential.page_key;
    else this.#renewal.hold(credential);
    this.#become({ status: 'live', person });
    for (const { resolve } of this.#waiting) resolve(credential);
    this.#waiting.clear();
  }

  #signOut(): Credential | null {
    this.#signOuts++;
    const last = this.#drop();
    this.#forget();
    this.#become({ status: 'signed_out', why: 'left' });
    return last;
  }

  /** Follows a sign-in or sign-out in another tab. */
  #follow(stored: StoredSession | null): void {
    if (this.#held()?.kind === 'token') return;
    if (stored === null) {
      if (this.#state.status !== 'signed_out') this.#signOut();
    } else if (this.#state.status === 'signed_out' || this.#state.person.operator_id === stored.person.operator_id)
      this.#take(stored);
    else this.#expire(stored.person);
  }
}
