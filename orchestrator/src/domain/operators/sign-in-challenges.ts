import {
  answeredSince,
  deleteAnswered,
  insertAnswered,
  newestAnswered,
} from '../../store/queries/sign-in-challenges.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import { intervalMs, lifeMs, type SignInNonce, SignInNonces } from './sign-in-nonces.ts';

/**
 * Milliseconds between the issue of the newest answered challenge and of those whose rows are deleted. Exceeds the life
 * of a challenge by more than any request takes.
 */
const keptMs = 15 * 60_000;
const deletedAtOnce = 500;

/**
 * Sign-in challenges of all processes on one database. Only answers are stored, in the transaction that opens the
 * session.
 *
 * The time never goes back behind the newest answered challenge. So an answer whose row has been deleted stays expired,
 * even if the clock is set back.
 */
export class SignInChallenges {
  readonly #context: Context;
  readonly #nonces: SignInNonces;
  #turn: number;

  /** @param key 32 secret bytes that all processes on the database share */
  constructor(context: Context, key: Buffer) {
    this.#context = context;
    this.#nonces = new SignInNonces(key);
    // Other processes should begin with another choice.
    this.#turn = context.randomBytes(1).readUInt8();
  }

  async issue(operatorId: string, bound: boolean): Promise<Buffer> {
    const now = await this.#now();
    if (bound) return this.#nonces.issueBound(operatorId, now, this.#context.randomBytes(10));
    return this.#nonces.issueUnbound(
      operatorId,
      now,
      this.#turn++,
      await this.#answeredBy(operatorId, now - intervalMs),
    );
  }

  /** Returns the bound nonce if it is live. It may have been answered, which {@link answered} refuses. */
  async readBound(operatorId: string, nonce: Buffer): Promise<SignInNonce | null> {
    return this.#nonces.readBound(operatorId, nonce, await this.#now());
  }

  /** Returns an operator's live unbound nonces that have not been answered. */
  async unbound(operatorId: string): Promise<Iterable<SignInNonce>> {
    const now = await this.#now();
    return this.#nonces.unbound(operatorId, now, await this.#answeredBy(operatorId, now - lifeMs - intervalMs));
  }

  /** Marks a nonce as answered. Its transaction fails with `signature_invalid` if the nonce was answered before. */
  answered(operatorId: string, { bytes, issuedAt }: SignInNonce): Statement {
    return statement(
      insertAnswered,
      { nonce: bytes.toString('hex'), operator_id: operatorId, issued_at_ms: issuedAt },
      { expect: 'changed', else: 'signature_invalid' },
    );
  }

  async #now(): Promise<number> {
    const newest = await this.#context.db.get(newestAnswered, {});
    return Math.max(this.#context.steadyNow(), newest?.issued_at_ms ?? 0);
  }

  async #answeredBy(operatorId: string, since: number): Promise<(nonce: string) => boolean> {
    const since_ms = Math.floor(since);
    const rows = await this.#context.db.all(answeredSince, { operator_id: operatorId, since_ms });
    const answered = new Set(rows.map(({ nonce }) => nonce));
    return (nonce) => answered.has(nonce);
  }
}

/** Deletes answered challenges that have been expired for a while. Each deletion commits by itself. */
export async function deleteOldAnswers({ db }: Pick<Context, 'db'>): Promise<void> {
  const newest = await db.get(newestAnswered, {});
  if (!newest) return;
  const old = { before_ms: newest.issued_at_ms - keptMs, limit: deletedAtOnce };
  while ((await db.alone(deleteAnswered, old)).changes === deletedAtOnce);
}
