import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Nonces of sign-in challenges. They contain or are derived from a MAC with a key that all processes share, so that
 * unanswered challenges require no memory and no rows, and requests that claim an operator's identity cannot displace
 * that operator's challenges. The caller passes times in Unix milliseconds.
 */

/** A nonce expires after this time. */
export const lifeMs = 60_000;
/** Maximum difference between the clocks of two processes. */
export const maxSkewMs = 60_000;
const timeBytes = 6;
const randomBytes = 10;
const tagBytes = 16;
/**
 * Unbound nonces are derived from the interval in which they were issued, because a response does not specify its
 * nonce. Each response is checked against the candidate nonces of all live intervals and of the next interval, which
 * another process may have reached.
 */
export const intervalMs = 10_000;
/** Number of unanswered unbound nonces per operator and interval. Bounds the number of signature checks. */
const choices = 8;

export interface SignInNonce {
  readonly bytes: Buffer;
  readonly issuedAt: number;
}

/** Reports whether an operator has answered the nonce, in lower-case hexadecimal. */
type IsAnswered = (nonce: string) => boolean;

export class SignInNonces {
  readonly #key: Buffer;

  /** @param key 32 secret bytes; nonces created with another key are invalid */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /**
   * Issues a bound nonce: a time, random bytes, and a MAC over both and the operator.
   * @param random at least 10 bytes
   */
  issueBound(operatorId: string, now: number, random: Buffer): Buffer {
    const head = Buffer.alloc(timeBytes + randomBytes);
    head.writeUIntBE(Math.floor(now), 0, timeBytes);
    random.copy(head, timeBytes, 0, randomBytes);
    return Buffer.concat([head, this.#boundTag(operatorId, head)]);
  }

  /** Returns the nonce if it was issued to this operator less than a minute ago; otherwise null. */
  readBound(operatorId: string, bytes: Buffer, now: number): SignInNonce | null {
    if (bytes.length !== timeBytes + randomBytes + tagBytes) return null;
    const head = bytes.subarray(0, timeBytes + randomBytes);
    if (!timingSafeEqual(this.#boundTag(operatorId, head), bytes.subarray(head.length))) return null;
    const issuedAt = head.readUIntBE(0, timeBytes);
    return now - issuedAt < lifeMs && issuedAt - now <= maxSkewMs ? { bytes, issuedAt } : null;
  }

  /**
   * Issues an unbound nonce. Several requests may get the same nonce.
   * @param turn a number that increases with each call, so that concurrent requests get different nonces
   */
  issueUnbound(operatorId: string, now: number, turn: number, isAnswered: IsAnswered): Buffer {
    return this.#unanswered(operatorId, Math.floor(now / intervalMs), isAnswered)[turn % choices]!.bytes;
  }

  /**
   * Iterates over an operator's unanswered unbound nonces, those of the current interval first. Each is valid for 50 to
   * 60 seconds.
   */
  *unbound(operatorId: string, now: number, isAnswered: IsAnswered): Generator<SignInNonce> {
    const current = Math.floor(now / intervalMs);
    for (let age = 0; age < lifeMs / intervalMs; age++) yield* this.#unanswered(operatorId, current - age, isAnswered);
    yield* this.#unanswered(operatorId, current + 1, isAnswered);
  }

  /** Returns the first unanswered nonces of an interval. The next nonce replaces each answered one. */
  #unanswered(operatorId: string, interval: number, isAnswered: IsAnswered): SignInNonce[] {
    const found: SignInNonce[] = [];
    for (let number = 0; found.length < choices; number++) {
      const bytes = createHmac('sha256', this.#key).update(`unbound\n${operatorId}\n${interval}\n${number}`).digest();
      if (!isAnswered(bytes.toString('hex'))) found.push({ bytes, issuedAt: interval * intervalMs });
    }
    return found;
  }

  #boundTag(operatorId: string, head: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(`bound\n${operatorId}\n`).update(head).digest().subarray(0, tagBytes);
  }
}
