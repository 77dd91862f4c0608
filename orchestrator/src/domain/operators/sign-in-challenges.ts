import { createHmac } from 'node:crypto';
import { MusterError } from '@muster/protocol';
import { putSetting, setting, settingWithValue } from '../../store/queries/settings.ts';
import {
  answeredSince,
  deleteAnswered,
  deleteAnsweredAfter,
  insertAnswered,
  newestAnswered,
} from '../../store/queries/sign-in-challenges.ts';
import { type Precondition, type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import { intervalMs, lifeMs, maxSkewMs, type SignInNonce, SignInNonces } from './sign-in-nonces.ts';

/**
 * Minimum difference in milliseconds between the issue time of the newest answered challenge and that of challenges
 * whose rows are deleted. Exceeds the lifetime of a challenge by more than the duration of any request.
 */
const keptMs = 15 * 60_000;
const deletedAtOnce = 500;

/** The setting with the epoch of the challenges. It is absent until the first epoch begins. */
const epochKey = 'sign_in_challenge_epoch';
const epochBegun = 'another process began an epoch of sign-in challenges';

/** A live nonce, and the epoch in which it was issued. */
export interface LiveNonce extends SignInNonce {
  readonly epoch: string;
}

interface Epoch {
  /** Empty if no epoch has begun. */
  readonly id: string;
  readonly nonces: SignInNonces;
  /** The time for challenges, in Unix milliseconds. */
  readonly now: number;
}

/**
 * Issues and verifies sign-in challenges for all processes that share a database. Only answers are stored, in the
 * transaction that creates the sign-in session.
 *
 * Within an epoch, time never moves back before the newest answered challenge. An answer whose row was deleted
 * therefore stays expired even if the clock is set back. If the clock is set back by more than the tolerated skew, a
 * new epoch begins: nonces from earlier epochs become invalid, and time follows the clock again. Otherwise, challenges
 * would not expire until the clock caught up.
 */
export class SignInChallenges {
  readonly #context: Context;
  readonly #key: Buffer;
  #latest: Pick<Epoch, 'id' | 'nonces'>;
  #turn: number;

  /** @param key 32 secret bytes that all processes on the database share */
  constructor(context: Context, key: Buffer) {
    this.#context = context;
    this.#key = key;
    this.#latest = { id: '', nonces: new SignInNonces(key) };
    // Random, so that different processes usually issue different nonces.
    this.#turn = context.randomBytes(1).readUInt8();
  }

  async issue(operatorId: string, bound: boolean): Promise<Buffer> {
    const { nonces, now } = await this.#epoch();
    if (bound) return nonces.issueBound(operatorId, now, this.#context.randomBytes(10));
    return nonces.issueUnbound(operatorId, now, this.#turn++, await this.#answeredBy(operatorId, now - intervalMs));
  }

  /**
   * Returns the bound nonce if it is live. The nonce may already have been answered; {@link answered} refuses such a
   * nonce.
   */
  async readBound(operatorId: string, nonce: Buffer): Promise<LiveNonce | null> {
    const { id: epoch, nonces, now } = await this.#epoch();
    const live = nonces.readBound(operatorId, nonce, now);
    return live && { ...live, epoch };
  }

  /** Returns an operator's live unbound nonces that have not been answered. */
  async unbound(operatorId: string): Promise<Iterable<LiveNonce>> {
    const { id: epoch, nonces, now } = await this.#epoch();
    const isAnswered = await this.#answeredBy(operatorId, now - lifeMs - intervalMs);
    return inEpoch(epoch, nonces.unbound(operatorId, now, isAnswered));
  }

  /**
   * Marks a nonce as answered. Its transaction fails with `signature_invalid` if the nonce was already answered, or if
   * its epoch has ended.
   */
  answered(operatorId: string, { bytes, issuedAt, epoch }: LiveNonce): Statement[] {
    const answer = { nonce: bytes.toString('hex'), operator_id: operatorId, issued_at_ms: issuedAt };
    return [
      stillIn(epoch, { else: 'signature_invalid' }),
      statement(insertAnswered, answer, { expect: 'changed', else: 'signature_invalid' }),
    ];
  }

  async #epoch(): Promise<Epoch> {
    const { db, steadyNow } = this.#context;
    for (;;) {
      // The epoch is read first, so that an answer from before an epoch never begins another epoch.
      const id = (await db.get(setting, { key: epochKey }))?.value ?? '';
      const newest = (await db.get(newestAnswered, {}))?.issued_at_ms ?? 0;
      const now = steadyNow();
      if (newest - now <= maxSkewMs) return { id, nonces: this.#noncesOf(id), now: Math.max(now, newest) };
      await this.#beginEpoch(id, now);
      this.#context.log.warn({ ahead_ms: newest - now }, 'clock was set back; earlier sign-in challenges are invalid');
    }
  }

  /** Begins an epoch, and deletes the answers dated later than any live answer can be. */
  async #beginEpoch(former: string, now: number): Promise<void> {
    const value = this.#context.randomBytes(16).toString('hex');
    try {
      await this.#context.db.write({
        name: 'auth/begin challenge epoch',
        statements: [
          stillIn(former, { else: 'storage_unavailable', detail: epochBegun }),
          statement(putSetting, { key: epochKey, value }),
          statement(deleteAnsweredAfter, { after_ms: Math.floor(now) + maxSkewMs }),
        ],
      });
    } catch (error) {
      if (!(error instanceof MusterError && error.message === epochBegun)) throw error;
    }
  }

  #noncesOf(id: string): SignInNonces {
    if (this.#latest.id !== id) {
      const key = createHmac('sha256', this.#key).update(`epoch\n${id}`).digest();
      this.#latest = { id, nonces: new SignInNonces(key) };
    }
    return this.#latest.nonces;
  }

  async #answeredBy(operatorId: string, since: number): Promise<(nonce: string) => boolean> {
    const since_ms = Math.floor(since);
    const rows = await this.#context.db.all(answeredSince, { operator_id: operatorId, since_ms });
    const answered = new Set(rows.map(({ nonce }) => nonce));
    return (nonce) => answered.has(nonce);
  }
}

function* inEpoch(epoch: string, nonces: Iterable<SignInNonce>): Generator<LiveNonce> {
  for (const nonce of nonces) yield { ...nonce, epoch };
}

/** Returns a precondition: the epoch has not ended. */
const stillIn = (epoch: string, otherwise: Omit<Precondition, 'expect'>): Statement =>
  epoch === ''
    ? statement(setting, { key: epochKey }, { expect: 'no_row', ...otherwise })
    : statement(settingWithValue, { key: epochKey, value: epoch }, { expect: 'row', ...otherwise });

/** Deletes answered challenges that have been expired for a while. Each deletion is a separate transaction. */
export async function deleteOldAnswers({ db }: Pick<Context, 'db'>): Promise<void> {
  const newest = await db.get(newestAnswered, {});
  if (!newest) return;
  const old = { before_ms: newest.issued_at_ms - keptMs, limit: deletedAtOnce };
  while ((await db.alone(deleteAnswered, old)).changes === deletedAtOnce);
}
