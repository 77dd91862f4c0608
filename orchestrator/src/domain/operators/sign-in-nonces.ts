import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The nonces of sign-in challenges: each is good once, for a minute. Times are milliseconds of a clock that never goes
 * back: by the wall clock, an answered nonce whose minute was over could become live again.
 */

const lifeMs = 60_000;
const timeBytes = 6;
const randomBytes = 10;
const tagBytes = 16;

/**
 * Nonces that carry their own proof: time, random bytes, and a MAC over both and the operator. Nothing is kept until one
 * is answered, so however many are asked for in the name of an operator, none displaces another.
 */
export class BoundNonces {
  readonly #secret: Buffer;
  /** Answered ones, by when they were issued. Only a signature of the operator puts one here. */
  readonly #spent = new Map<string, number>();

  /** @param secret 32 random bytes; nonces made under another are not good */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  /** @param random at least 10 bytes */
  issue(operatorId: string, now: number, random: Buffer): Buffer {
    const head = Buffer.alloc(timeBytes + randomBytes);
    head.writeUIntBE(Math.floor(now), 0, timeBytes);
    random.copy(head, timeBytes, 0, randomBytes);
    return Buffer.concat([head, this.#tag(operatorId, head)]);
  }

  /** Whether the nonce was issued for this operator, less than a minute ago, and was not answered. */
  isLive(operatorId: string, nonce: Buffer, now: number): boolean {
    if (nonce.length !== timeBytes + randomBytes + tagBytes) return false;
    const head = nonce.subarray(0, timeBytes + randomBytes);
    if (!timingSafeEqual(this.#tag(operatorId, head), nonce.subarray(head.length))) return false;
    const age = now - head.readUIntBE(0, timeBytes);
    return age >= 0 && age < lifeMs && !this.#spent.has(nonce.toString('hex'));
  }

  /** Call for a live nonce whose signature verified. */
  spend(nonce: Buffer, now: number): void {
    for (const [text, issued] of this.#spent) if (now - issued >= lifeMs) this.#spent.delete(text);
    this.#spent.set(nonce.toString('hex'), nonce.readUIntBE(0, timeBytes));
  }

  #tag(operatorId: string, head: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(`${operatorId}\n`).update(head).digest().subarray(0, tagBytes);
  }
}

/** Live nonces of the bare form for one key from one network. */
const perNetwork = 8;
/** And of all networks together: a bound on memory, and on the signatures that one answer is compared with. */
const perOperator = 64;

interface Entry {
  readonly nonce: Buffer;
  readonly until: number;
  readonly network: string;
}

/**
 * Nonces of the bare form: its answer does not say which nonce was signed, so they are kept. Each network has a share, so
 * that a stranger who asks in the name of an operator does not displace what the operator was given.
 */
export class BareNonces {
  /** By operator id, oldest first. */
  readonly #live = new Map<string, readonly Entry[]>();

  add(operatorId: string, network: string, nonce: Buffer, now: number): void {
    let live = this.#of(operatorId, now);
    const own = live.filter((entry) => entry.network === network);
    if (own.length >= perNetwork) live = live.filter((entry) => entry !== own[0]);
    else if (live.length >= perOperator) live = withoutOldestOfLargest(live);
    this.#live.set(operatorId, [...live, { nonce, until: now + lifeMs, network }]);
  }

  /** Live ones, those of the network first. */
  candidates(operatorId: string, network: string, now: number): Buffer[] {
    const live = this.#of(operatorId, now);
    const [own, others] = [true, false].map((is) => live.filter((entry) => (entry.network === network) === is));
    return [...(own ?? []), ...(others ?? [])].map(({ nonce }) => nonce);
  }

  spend(operatorId: string, nonce: Buffer, now: number): void {
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
  const most = Math.max(...counts.values());
  const oldest = live.find(({ network }) => counts.get(network) === most);
  return live.filter((entry) => entry !== oldest);
}
