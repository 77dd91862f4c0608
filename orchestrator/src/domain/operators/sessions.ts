import { createHash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Role } from '@muster/protocol/http';
import {
  deleteSession,
  insertSession,
  liveOperator,
  sessionByHash,
  unboundSessions,
} from '../../store/queries/operators.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds, systemActor } from '../shared/context.ts';

/** Opens, finds, renews, and ends sign-in sessions. */

/** A live sign-in session. Every signed-in request has one. */
export interface Session {
  token_hash: string;
  operator_id: string;
  username: string;
  role: Role;
  /** Unix seconds. */
  expires_at: number;
  signed_in_at: number;
}

export const actorOf = (session: Pick<Session, 'operator_id' | 'username'>): Actor => ({
  type: 'operator',
  id: session.operator_id,
  name: session.username,
});

/** Returns a session's actor. Its changes fail once the session has ended. */
export const actorIn = (session: Pick<Session, 'operator_id' | 'username' | 'token_hash'>): Actor => ({
  ...actorOf(session),
  session: session.token_hash,
});

export const hashOfToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export interface SignedIn {
  readonly token: string;
  readonly expires_at: number;
  readonly operator: Pick<Session, 'operator_id' | 'username' | 'role'>;
}

export interface SessionRules {
  /** Lifetime of a token in seconds. */
  readonly tokenLifeSecs: number;
  /** Whether to refuse signatures that do not name the server, and sessions that such signatures opened. */
  readonly requireBound: boolean;
}

/** A stored session. `bound` is 1 if its signature named this server. */
export type StoredSession = Session & { readonly bound: number };

/** Seconds after the signature during which a session can be renewed. */
const renewableSecs = 12 * 3600;
/** Maximum number of sessions in memory. Others are read from the database when needed. */
const cachedSessions = 10_000;

export class Sessions {
  readonly #context: Context;
  readonly #rules: SessionRules;
  readonly #cache = new Map<string, StoredSession>();
  /** Number of ended sessions. Detects that a session ended while a row was read, which is then not cached. */
  #removals = 0;

  constructor(context: Context, rules: SessionRules) {
    this.#context = context;
    this.#rules = rules;
  }

  /** Returns a token's live session, by its SHA-256 (hex), or null. */
  find(tokenHash: string): Session | null | Promise<Session | null> {
    const cached = this.#cache.get(tokenHash);
    if (!cached) return this.read(tokenHash);
    if (cached.expires_at > this.#now() && !this.isRefused(cached)) return cached;
    this.#cache.delete(tokenHash);
    return null;
  }

  /**
   * Reads a session from the database. Repeats the read if a session ended in the meantime, because it may have been
   * this one.
   */
  async read(tokenHash: string): Promise<StoredSession | null> {
    for (;;) {
      const removals = this.#removals;
      const row = await this.#context.db.get(sessionByHash, { token_hash: tokenHash });
      if (!row || row.removed_at !== null || row.expires_at <= this.#now() || this.isRefused(row)) return null;
      if (removals !== this.#removals) continue;
      const { removed_at: _, ...session } = row;
      if (this.#cache.size >= cachedSessions) this.#cache.delete(this.#cache.keys().next().value as string);
      this.#cache.set(session.token_hash, session);
      return session;
    }
  }

  /** Reports whether the session must be refused because its signature names no server. */
  isRefused({ bound }: { bound: number }): boolean {
    return bound === 0 && this.#rules.requireBound;
  }

  /**
   * Opens a session.
   * @param signedInAt when the operator signed the challenge, in Unix seconds
   * @param more preconditions and the event
   */
  async open(
    { operator_id, username, role }: SignedIn['operator'],
    signedInAt: number,
    bound: number,
    more: readonly Statement[],
  ): Promise<SignedIn> {
    const { tokenLifeSecs } = this.#rules;
    const token = this.#context.randomBytes(32).toString('base64url');
    const now = this.#now();
    const session = {
      token_hash: hashOfToken(token),
      operator_id,
      signed_in_at: signedInAt,
      bound,
      expires_at: Math.min(now + tokenLifeSecs, signedInAt + renewableSecs + tokenLifeSecs),
    };
    await this.#context.db.write({
      name: 'auth/issue session',
      statements: [
        // Ensures that an operator who is removed concurrently gets no session.
        statement(liveOperator, { operator_id }, { expect: 'row', else: 'unauthenticated' }),
        statement(insertSession, { ...session, created_at: now }),
        ...more,
      ],
    });
    return { token, expires_at: session.expires_at, operator: { operator_id, username, role } };
  }

  /**
   * Renews a session.
   * @throws MusterError unauthenticated if the operator signed in too long ago
   */
  async renew(tokenHash: string): Promise<{ token: string; expires_at: number }> {
    const session = await this.read(tokenHash);
    if (!session) throw new MusterError('unauthenticated');
    if (this.#now() > session.signed_in_at + renewableSecs)
      throw new MusterError('unauthenticated', 'the sign-in is too old to be renewed; sign in again');
    const opened = await this.open(session, session.signed_in_at, session.bound, [
      statement(deleteSession, { token_hash: session.token_hash }, { expect: 'changed', else: 'unauthenticated' }),
      audited(this.#context, {
        type: 'auth.renewed',
        actor: actorOf(session),
        summary: `${session.username} renewed a sign-in session`,
      }),
    ]);
    await this.#ended(session.token_hash, hashOfToken(opened.token));
    return { token: opened.token, expires_at: opened.expires_at };
  }

  async logout(tokenHash: string): Promise<void> {
    const session = await this.read(tokenHash);
    if (!session) return;
    await this.#context.db.write({
      name: 'auth/sign out',
      statements: [
        statement(deleteSession, { token_hash: session.token_hash }),
        audited(this.#context, {
          type: 'auth.signed_out',
          actor: actorOf(session),
          summary: `${session.username} signed out`,
        }),
      ],
    });
    await this.#ended(session.token_hash, null);
  }

  /**
   * Terminates the sessions whose signatures named no server. Call it if `requireBound` is set.
   * @returns the number of terminated sessions
   */
  async endUnbound(): Promise<number> {
    const sessions = await this.#context.db.all(unboundSessions, { now: this.#now() });
    let count = 0;
    for (const { token_hash, ...operator } of sessions) {
      try {
        await this.#context.db.write({
          name: 'auth/end unbound session',
          statements: [
            statement(deleteSession, { token_hash }, { expect: 'changed', else: 'unauthenticated' }),
            audited(this.#context, {
              type: 'auth.signed_out',
              actor: systemActor,
              target: { type: 'operator', id: operator.operator_id, name: operator.username },
              summary: `a sign-in session of ${operator.username} ended: its signature names no server, and sign_in.require_bound is set`,
            }),
          ],
        });
        count++;
      } catch (error) {
        // The operator signed out after the query.
        if (!(error instanceof MusterError && error.code === 'unauthenticated')) throw error;
      }
      await this.#ended(token_hash, null);
    }
    return count;
  }

  forgetOperator(operatorId: string): void {
    this.#removals++;
    for (const [hash, session] of this.#cache) if (session.operator_id === operatorId) this.#cache.delete(hash);
  }

  /** Announces that a session has ended. Resolves when its streams and terminals are closed. */
  async #ended(tokenHash: string, renewedAs: string | null): Promise<void> {
    this.#removals++;
    this.#cache.delete(tokenHash);
    this.#context.bus.publish({ type: 'session_ended', token_hash: tokenHash, renewed_as: renewedAs });
    await this.#context.bus.delivered();
  }

  #now(): number {
    return seconds(this.#context.now());
  }
}
