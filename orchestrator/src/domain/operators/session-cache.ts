import type { Role } from '@muster/protocol/http';
import { sessionByHash, sessionsByHash, sessionsBySignIn } from '../../store/queries/sessions.ts';
import type { SessionsTable } from '../../store/schema.ts';
import type { Context } from '../shared/context.ts';

/** A stored session with its operator. */
export type StoredSession = SessionsTable & { username: string; role: Role };

interface Cached {
  readonly session: StoredSession;
  /** When the row was last read, in monotonic milliseconds. */
  readAt: number;
}

/** Maximum number of sessions in memory. Others are read from the database when needed. */
const cachedSessions = 10_000;

/**
 * Milliseconds for which a replica uses a cached session without reading it again. Reads in the background refresh it
 * every second, because another replica may end it.
 */
const freshMs = 2_000;

/** The sign-in sessions in use, which other replicas may end or renew. */
export class SessionCache {
  readonly #context: Context;
  readonly #isLive: (session: SessionsTable) => boolean;
  readonly #sessions = new Map<string, Cached>();
  /** The ID that each checked session shares with its successors, by token hash. */
  readonly #signInIds = new Map<string, string | null>();
  /** Number of ended sessions. Shows that a session ended while a row was being read; that row is then not cached. */
  #removals = 0;

  constructor(context: Context, isLive: (session: SessionsTable) => boolean) {
    this.#context = context;
    this.#isLive = isLive;
  }

  /** Returns a live session by its token hash, from memory if that is fresh, or null. */
  find(tokenHash: string): StoredSession | null | Promise<StoredSession | null> {
    const cached = this.#sessions.get(tokenHash);
    if (!cached || !this.#isFresh(cached)) return this.read(tokenHash);
    if (this.#isLive(cached.session)) return cached.session;
    this.#sessions.delete(tokenHash);
    return null;
  }

  #isFresh({ readAt }: Cached): boolean {
    return !this.#context.isReplica || Math.abs(this.#context.steadyNow() - readAt) < freshMs;
  }

  /**
   * Reads a live session from the database. Repeats the read if a session ended during the read, because it may have
   * been this session.
   */
  async read(tokenHash: string): Promise<StoredSession | null> {
    for (;;) {
      const removals = this.#removals;
      const readAt = this.#context.steadyNow();
      const row = await this.#context.db.get(sessionByHash, { token_hash: tokenHash });
      if (!row || row.removed_at !== null || !this.#isLive(row)) {
        this.#sessions.delete(tokenHash);
        return null;
      }
      if (removals !== this.#removals) continue;
      const { removed_at: _, ...session } = row;
      if (this.#sessions.size >= cachedSessions) this.#sessions.delete(this.#sessions.keys().next().value as string);
      this.#sessions.set(session.token_hash, { session, readAt });
      return session;
    }
  }

  /**
   * Reads the sessions in use again, and announces those that another replica has ended or renewed.
   * @param tokenHashes token hashes of the sign-in sessions that opened terminals
   */
  async recheck(tokenHashes: readonly string[]): Promise<void> {
    const { db, bus, steadyNow } = this.#context;
    for (const hash of this.#signInIds.keys())
      if (!this.#sessions.has(hash) && !tokenHashes.includes(hash)) this.#signInIds.delete(hash);
    const hashes = [...new Set([...this.#sessions.keys(), ...tokenHashes])];
    if (hashes.length === 0) return;
    const readAt = steadyNow();
    const rows = new Map((await db.all(sessionsByHash, { token_hashes: hashes })).map((row) => [row.token_hash, row]));
    for (const [hash, { removed_at, ...row }] of rows) {
      this.#signInIds.set(hash, row.session_id);
      const cached = this.#sessions.get(hash);
      if (removed_at !== null) {
        // Listeners are notified only in a later turn, so this removes the operator's sessions immediately.
        this.forgetOperator(row.operator_id);
        bus.publishHere({ type: 'operator_removed', operator_id: row.operator_id });
      } else if (cached) {
        const { last_used_at, signed_in_at, expires_at } = cached.session;
        // The session may have been used since this read began, which extends it.
        const isUsed = (last_used_at ?? 0) > (row.last_used_at ?? 0);
        Object.assign(cached.session, row, isUsed ? { last_used_at, signed_in_at, expires_at } : {});
        cached.readAt = readAt;
      }
    }
    const gone = hashes.filter((hash) => !rows.has(hash));
    if (gone.length === 0) return;
    const ids = gone.flatMap((hash) => this.#signInIds.get(hash) ?? []);
    const successors = ids.length === 0 ? [] : await db.all(sessionsBySignIn, { session_ids: ids });
    for (const hash of gone) {
      const id = this.#signInIds.get(hash);
      const successor = successors.find(({ session_id }) => session_id === id);
      this.forget(hash);
      bus.publishHere({ type: 'session_ended', token_hash: hash, renewed_as: successor?.token_hash ?? null });
    }
  }

  /** Removes a session, because it has ended, perhaps on another replica. */
  forget(tokenHash: string): void {
    this.#removals++;
    this.#sessions.delete(tokenHash);
  }

  forgetOperator(operatorId: string): void {
    this.#removals++;
    for (const [hash, { session }] of this.#sessions)
      if (session.operator_id === operatorId) this.#sessions.delete(hash);
  }
}
