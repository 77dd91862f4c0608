import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Nonces of sign-in challenges. Each is valid once, for a minute. Uses monotonic milliseconds: if a wall clock were set
 * back, an expired nonce could become valid again after it was answered.
 */

const lifeMs = 60_000;
const timeBytes = 6;
const randomBytes = 10;
const tagBytes = 16;

/**
 * Stateless nonces: a time, random bytes, and a MAC over both and the operator. Stores only answered nonces, so that
 * requests in the name of an operator cannot displace a nonce.
 */
export class BoundNonces {
  readonly #secret: Buffer;
  /** Answered nonces, with the times at which they were issued. Only a valid signature by the operator adds one. */
  readonly #answered = new Map<string, number>();

  /** @param secret 32 random bytes; nonces created with another secret are invalid */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /**
   * Issues a nonce.
   * @param random at least 10 bytes
   */
  issue(operatorId: string, now: number, random: Buffer): Buffer {
    const head = Buffer.alloc(timeBytes + randomBytes);
    head.writeUIntBE(Math.floor(now), 0, timeBytes);
    random.copy(head, timeBytes, 0, randomBytes);
    return Buffer.concat([head, this.#tag(operatorId, head)]);
  }

  /** Reports whether the nonce was issued for this operator less than a minute ago and has not been answered. */
  isLive(operatorId: string, nonce: Buffer, now: number): boolean {
    if (nonce.length !== timeBytes + randomBytes + tagBytes) return false;
    const head = nonce.subarray(0, timeBytes + randomBytes);
    if (!timingSafeEqual(this.#tag(operatorId, head), nonce.subarray(head.length))) return false;
    const age = now - head.readUIntBE(0, timeBytes);
    return age >= 0 && age < lifeMs && !this.#answered.has(nonce.toString('hex'));
  }

  /** Marks a live nonce as answered. Call this after the signature was verified. */
  markAnswered(nonce: Buffer, now: number): void {
    for (const [text, issued] of this.#answered) if (now - issued >= lifeMs) this.#answered.delete(text);
    this.#answered.set(nonce.toString('hex'), nonce.readUIntBE(0, timeBytes));
  }

  #tag(operatorId: string, head: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(`${operatorId}\n`).update(head).digest().subarray(0, tagBytes);
  }
}

/** Maximum live unbound nonces per key and network. */
const perNetwork = 8;
/** Maximum live unbound nonces per key. Bounds memory, and the number of signature checks for each answer. */
const perOperator = 64;

interface Entry {
  readonly nonce: Buffer;
  readonly until: number;
  readonly network: string;
}

/**
 * Unbound nonces. An answer does not name its nonce, so all nonces are stored. Each network has its own limit, so that
 * strangers who send requests in the name of an operator do not displace the operator's nonces.
 */
export class UnboundNonces {
  /** Nonces by operator id, oldest first. */
  readonly #live = new Map<string, readonly Entry[]>();

  add(operatorId: string, network: string, nonce: Buffer, now: number): void {
    let live = this.#of(operatorId, now);
    const own = live.filter((entry) => entry.network === network);
    if (own.length >= perNetwork) live = live.filter((entry) => entry !== own[0]);
    else if (live.length >= perOperator) live = withoutOldestOfLargest(live);
    this.#live.set(operatorId, [...live, { nonce, until: now + lifeMs, network }]);
  }

  /** Returns an operator's live nonces. Nonces requested from this network come first. */
  candidates(operatorId: string, network: string, now: number): Buffer[] {
    const live = this.#of(operatorId, now);
    const [own, others] = [true, false].map((is) => live.filter((entry) => (entry.network === network) === is));
    return [...(own ?? []), ...(others ?? [])].map(({ nonce }) => nonce);
  }

  markAnswered(operatorId: string, nonce: Buffer, now: number): void {
    const left = this.#of(operatorId, now).filter((entry) => entry.nonce !== nonce);
    if (left.length === 0) this.#live.delete(operatorId);
    else this.#live.set(operatorId, left);
  }

  forget(operatorId: string): void {
    this.#live.delete(operatorId);
  }

  #of(operatorId: string, now: number): readonly Entry[] {
    return (this.#live.get(operatorId) ?? []).filter(({ until }) => until > now);
  }
}

function withoutOldestOfLargest(live: readonly Entry[]): readonly Entry[] {
  const counts = new Map<string, number>();
  for (const { network } of live) counts.set(network, (counts.get(network) ?? 0) + 1);
  const maxCount = Math.max(...counts.values());
  const oldest = live.find(({ network }) => counts.get(network) === maxCount);
  return live.filter((entry) => entry !== oldest);
}
