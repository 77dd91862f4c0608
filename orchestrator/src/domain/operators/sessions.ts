import { hash } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import type { Role, signInSessionSchema } from '@muster/protocol/http';
import type { z } from 'zod';
import { liveOperator } from '../../store/queries/operators.ts';
import {
  correctSession,
  deleteSession,
  deleteSessionsOf,
  insertSession,
  otherSessionOf,
  sessionsOf,
  unboundSessions,
  useSession,
} from '../../store/queries/sessions.ts';
import { moveTickets } from '../../store/queries/terminals.ts';
import type { SessionsTable } from '../../store/schema.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { stillSignedIn } from '../shared/acting.ts';
import { type Actor, type Context, seconds, systemActor } from '../shared/context.ts';
import { SessionCache, type StoredSession } from './session-cache.ts';

/** Opens, finds, renews, lists, and ends sign-in sessions. */

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

export const hashOfToken = (token: string): string => hash('sha256', token);

export interface SignedIn {
  readonly token: string;
  readonly expires_at: number;
  readonly operator: Pick<Session, 'operator_id' | 'username' | 'role'>;
}

/** A browser's session. The browser sends the cookie, and the page sends the page key. */
export interface ConsoleSession {
  readonly cookie: string;
  readonly page_key: string;
  /** Latest time at which the session ends, in Unix seconds. */
  readonly expires_at: number;
  /** Maximum remaining lifetime of the session, in seconds. */
  readonly life_secs: number;
  readonly operator: SignedIn['operator'];
}

/**
 * Returns the text whose hash is a console session's `token_hash`. Contains characters that no header can contain, so
 * that it cannot be sent as a bearer token.
 */
export const consoleToken = (cookie: string, pageKey: string): string => `console\n${cookie}\n${pageKey}`;

/** The client that opens a session, for the list of sessions. */
export interface SessionClient {
  readonly ip: string;
  /** Untrusted text. */
  readonly userAgent?: string | undefined;
}

export type ListedSession = z.output<typeof signInSessionSchema>;

export interface SessionRules {
  /** Lifetime of a token in seconds. */
  readonly tokenLifeSecs: number;
  /** Seconds without use after which a console session ends. */
  readonly consoleIdleSecs: number;
  /** Seconds after the sign-in at which a console session ends. */
  readonly consoleLifeSecs: number;
  /** Whether to refuse signatures that do not name the server, and sessions opened with such signatures. */
  readonly requireBound: boolean;
}

/** The data of a session to open. */
export interface NewSession {
  readonly operator: SignedIn['operator'];
  /** When the operator signed the challenge, in Unix seconds. */
  readonly signedInAt: number;
  /** 1 if the signature named this server. */
  readonly bound: number;
  readonly client: SessionClient;
}

/** Seconds after the signature during which a session can be renewed. */
const renewableSecs = 12 * 3600;
/**
 * Seconds after which a console session ends if it was never used, because the response with its cookie may have been
 * lost.
 */
const firstUseSecs = 60;
/** Minimum time between writes of a session's last use, in seconds. */
const useSecs = 300;
/** Maximum length of a stored user agent, in characters. */
const maxUserAgent = 256;

export class Sessions {
  readonly #context: Context;
  readonly #rules: SessionRules;
  readonly cache: SessionCache;

  constructor(context: Context, rules: SessionRules) {
    this.#context = context;
    this.#rules = rules;
    this.cache = new SessionCache(context, (session) => this.#isLive(session, this.#now()));
  }

  /** Returns a token's live session, by its SHA-256 (hex), or null. Records that it is in use. */
  find(tokenHash: string): Session | null | Promise<Session | null> {
    const found = this.cache.find(tokenHash);
    if (found instanceof Promise) return found.then((session) => session && this.#used(session));
    return found && this.#used(found);
  }

  #isLive(session: SessionsTable, now: number): boolean {
    return now < Math.min(session.expires_at, this.#endOf(session)) && !this.isRefused(session);
  }

  /** Returns when a session ends under the current rules if it is not used again, in Unix seconds. */
  #endOf({ kind, created_at, last_used_at, signed_in_at, expires_at }: SessionsTable): number {
    if (kind === 'token') return expires_at;
    const { consoleIdleSecs, consoleLifeSecs } = this.#rules;
    return Math.min((last_used_at ?? created_at) + consoleIdleSecs, signed_in_at + consoleLifeSecs);
  }

  /** Records that a session is in use, which extends a console session. Writes at most once every few minutes. */
  #used(session: StoredSession): StoredSession {
    const now = this.#now();
    const interval =
      session.kind === 'token' ? useSecs : Math.min(useSecs, Math.floor(this.#rules.consoleIdleSecs / 10));
    const last = session.last_used_at ?? session.created_at;
    const isAhead = Math.max(last, session.signed_in_at) > now;
    const isFirst = session.kind === 'console' && session.last_used_at === null;
    if (!isAhead && !isFirst && now - last < interval) return session;
    const before = session.last_used_at;
    session.last_used_at = now;
    if (isAhead) {
      // The clock was set back. Times in the future would extend the session.
      session.signed_in_at = Math.min(session.signed_in_at, now);
      session.expires_at = Math.min(session.expires_at, now + this.#rules.tokenLifeSecs);
    }
    session.expires_at = this.#endOf(session);
    const { token_hash, signed_in_at, expires_at } = session;
    this.#context.db
      .write({
        name: 'auth/use session',
        statements: [
          isAhead
            ? statement(correctSession, { token_hash, signed_in_at, last_used_at: now, expires_at })
            : statement(useSession, { token_hash, last_used_at: now, expires_at }),
        ],
      })
      .catch((error: unknown) => {
        // The next use retries the write.
        session.last_used_at = before;
        this.#context.log.warn({ err: error }, 'failed to record use of a sign-in session');
      });
    return session;
  }

  /** Reports whether the session must be refused because its signature names no server. */
  isRefused({ bound }: { bound: number }): boolean {
    return bound === 0 && this.#rules.requireBound;
  }

  /**
   * Opens a session with a token.
   * @param more additional preconditions, and the audit event to record
   */
  async open(session: NewSession, more: readonly Statement[]): Promise<SignedIn> {
    return await this.#openToken(session, this.#context.newId(), () => more);
  }

  async #openToken(
    session: NewSession,
    id: string | null,
    more: (tokenHash: string) => readonly Statement[],
  ): Promise<SignedIn> {
    const { tokenLifeSecs } = this.#rules;
    const token = this.#newSecret();
    const token_hash = hashOfToken(token);
    const expires_at = Math.min(this.#now() + tokenLifeSecs, session.signedInAt + renewableSecs + tokenLifeSecs);
    await this.#insert(session, { token_hash, kind: 'token', session_id: id, expires_at }, more(token_hash));
    return { token, expires_at, operator: operatorOf(session.operator) };
  }

  async #insert(
    { operator: { operator_id }, signedInAt, bound, client }: NewSession,
    row: Pick<SessionsTable, 'token_hash' | 'kind' | 'session_id' | 'expires_at'>,
    more: readonly Statement[],
  ): Promise<void> {
    await this.#context.db.write({
      name: 'auth/issue session',
      statements: [
        // Prevents a concurrently removed operator from getting a session.
        statement(liveOperator, { operator_id }, { expect: 'row', else: 'unauthenticated' }),
        statement(insertSession, {
          ...row,
          operator_id,
          bound,
          signed_in_at: signedInAt,
          created_at: this.#now(),
          last_used_at: null,
          user_agent: client.userAgent?.slice(0, maxUserAgent) ?? null,
          address: client.ip === '' ? null : client.ip,
        }),
        ...more,
      ],
    });
  }

  #newSecret(): string {
    return this.#context.randomBytes(32).toString('base64url');
  }

  /**
   * Reads a token's session, which the caller will replace.
   * @throws MusterError unauthenticated; session_token_required for a console session, whose cookie must not become a
   *   token that scripts can read
   */
  async readToken(tokenHash: string): Promise<StoredSession> {
    const session = await this.cache.read(tokenHash);
    if (!session) throw new MusterError('unauthenticated');
    if (session.kind !== 'token') throw new MusterError('session_token_required');
    return session;
  }

  /**
   * Reads a token's session, which the caller will exchange for a console session.
   * @throws MusterError unauthenticated, also if a console session of this sign-in would already have ended;
   *   session_token_required
   */
  async readForConsole(tokenHash: string): Promise<StoredSession> {
    const session = await this.readToken(tokenHash);
    if (this.#now() >= session.signed_in_at + this.#rules.consoleLifeSecs)
      throw new MusterError('unauthenticated', 'the sign-in is too old for a console session; sign in again');
    return session;
  }

  /**
   * Renews a session.
   * @throws MusterError unauthenticated if the operator signed in too long ago; session_token_required for a console session
   */
  async renew(tokenHash: string): Promise<{ token: string; expires_at: number }> {
    const session = await this.readToken(tokenHash);
    if (this.#now() > session.signed_in_at + renewableSecs)
      throw new MusterError('unauthenticated', 'the sign-in is too old to be renewed; sign in again');
    const opened = await this.#openToken(successorOf(session), session.session_id ?? this.#context.newId(), (hash) => [
      ...replacing(session, hash),
      audited(this.#context, {
        type: 'auth.renewed',
        actor: actorOf(session),
        summary: `${session.username} renewed a sign-in session`,
      }),
    ]);
    await this.#ended(session.token_hash, hashOfToken(opened.token));
    return { token: opened.token, expires_at: opened.expires_at };
  }

  /**
   * Exchanges a session's token for a console session.
   * @throws MusterError unauthenticated; session_token_required for a console session
   */
  async openConsole(tokenHash: string): Promise<ConsoleSession> {
    const session = await this.readForConsole(tokenHash);
    const [cookie, page_key] = [this.#newSecret(), this.#newSecret()];
    const id = session.session_id ?? this.#context.newId();
    const token_hash = hashOfToken(consoleToken(cookie, page_key));
    const now = this.#now();
    const life = session.signed_in_at + this.#rules.consoleLifeSecs;
    const expires_at = Math.min(now + Math.min(firstUseSecs, this.#rules.consoleIdleSecs), life);
    await this.#insert(successorOf(session), { token_hash, kind: 'console', session_id: id, expires_at }, [
      ...replacing(session, token_hash),
      audited(this.#context, {
        type: 'auth.console_opened',
        actor: actorOf(session),
        summary: `${session.username} opened a console session`,
        metadata: { session_id: id },
      }),
    ]);
    await this.#ended(session.token_hash, token_hash);
    return { cookie, page_key, expires_at: life, life_secs: life - now, operator: operatorOf(session) };
  }

  async logout(tokenHash: string): Promise<void> {
    const session = await this.cache.read(tokenHash);
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

  /** Lists an operator's live sessions, newest first. @param current the session of the request */
  async list(current: Pick<Session, 'operator_id' | 'token_hash'>): Promise<ListedSession[]> {
    return (await this.#liveOf(current.operator_id)).map((row) => ({
      id: row.session_id ?? '',
      kind: row.kind,
      current: row.token_hash === current.token_hash,
      signed_in_at: row.signed_in_at,
      last_used_at: row.last_used_at,
      expires_at: Math.min(row.expires_at, this.#endOf(row)),
      user_agent: row.user_agent,
      address: row.address,
    }));
  }

  async #liveOf(operatorId: string): Promise<SessionsTable[]> {
    const now = this.#now();
    const rows = await this.#context.db.all(sessionsOf, { operator_id: operatorId, now });
    return rows.filter((row) => this.#isLive(row, now));
  }

  /**
   * Ends one of the operator's sessions.
   * @throws MusterError session_not_found, unauthenticated
   */
  async end(actor: Actor, id: string): Promise<void> {
    for (;;) {
      const row = id === '' ? undefined : (await this.#liveOf(actor.id)).find(({ session_id }) => session_id === id);
      if (!row) {
        await stillSignedIn(this.#context, actor);
        throw new MusterError('session_not_found');
      }
      try {
        await this.#endOne(actor, id, row.token_hash);
      } catch (error) {
        // If the session was renewed or exchanged after the query, its successor has the same ID.
        if (error instanceof MusterError && error.code === 'session_not_found') continue;
        throw error;
      }
      return;
    }
  }

  async #endOne(actor: Actor, id: string, tokenHash: string): Promise<void> {
    await this.#context.db.write({
      name: 'auth/end session',
      statements: [
        // Must precede the deletion, because the request may end its own session.
        audited(this.#context, {
          type: 'auth.sessions_ended',
          actor,
          summary: `${actor.name} ended a sign-in session`,
          metadata: { session_id: id },
        }),
        statement(deleteSession, { token_hash: tokenHash }, { expect: 'changed', else: 'session_not_found' }),
      ],
    });
    await this.#ended(tokenHash, null);
  }

  /** Ends all of the operator's sessions. @returns the number of ended sessions */
  async endAll(actor: Actor): Promise<number> {
    for (;;) {
      const now = this.#now();
      const rows = await this.#context.db.all(sessionsOf, { operator_id: actor.id, now });
      const token_hashes = rows.map(({ token_hash }) => token_hash);
      try {
        await this.#context.db.write({
          name: 'auth/end sessions',
          statements: [
            audited(this.#context, {
              type: 'auth.sessions_ended',
              actor,
              summary: `${actor.name} ended all sign-in sessions`,
              metadata: { count: rows.length },
            }),
            // Repeats the query, because the streams of a session that was opened or renewed after the query would stay
            // open.
            statement(
              otherSessionOf,
              { operator_id: actor.id, now, token_hashes },
              { expect: 'no_row', else: 'storage_unavailable', detail: openedMeanwhile },
            ),
            statement(deleteSessionsOf, { operator_id: actor.id }),
          ],
        });
      } catch (error) {
        if (error instanceof MusterError && error.message === openedMeanwhile) continue;
        throw error;
      }
      await Promise.all(token_hashes.map((hash) => this.#ended(hash, null)));
      return rows.length;
    }
  }

  /**
   * Ends the sessions whose signatures named no server. Call this if `requireBound` is set.
   * @returns the number of ended sessions
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

  /** Announces that a session has ended. Resolves when its streams and terminals are closed. */
  async #ended(tokenHash: string, renewedAs: string | null): Promise<void> {
    this.cache.forget(tokenHash);
    this.#context.bus.publish({ type: 'session_ended', token_hash: tokenHash, renewed_as: renewedAs });
    await this.#context.bus.delivered();
  }

  #now(): number {
    return seconds(this.#context.now());
  }
}

const openedMeanwhile = 'a sign-in session was opened at the same time';

const operatorOf = ({ operator_id, username, role }: SignedIn['operator']): SignedIn['operator'] => ({
  operator_id,
  username,
  role,
});

/** Returns the session that replaces a session from the same sign-in. */
const successorOf = (session: StoredSession): NewSession => ({
  operator: operatorOf(session),
  signedInAt: session.signed_in_at,
  bound: session.bound,
  client: { ip: session.address ?? '', userAgent: session.user_agent ?? undefined },
});

const replacing = ({ token_hash }: StoredSession, successor: string): Statement[] => [
  statement(deleteSession, { token_hash }, { expect: 'changed', else: 'unauthenticated' }),
  statement(moveTickets, { from: token_hash, to: successor }),
];
