export interface RefusedHelloLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Networks that are remembered; further ones take the place of the one that was charged least recently. */
const mostNetworks = 1024;

interface Account {
  /** Below 1, the network waits. Negative after handshakes that were under way together. */
  tokens: number;
  refilledAt: number;
}

/** Holds back networks whose hellos are refused, by a token bucket each. Times are monotonic milliseconds. */
export class RefusedHellos {
  private readonly limits: RefusedHelloLimits;
  /** Networks that were charged, the least recent first. */
  private readonly accounts = new Map<string, Account>();

  constructor(limits: RefusedHelloLimits) {
    this.limits = limits;
  }

  /** A hello of the network was refused. @param cost 1 for a refusal of full weight */
  charge(network: string, cost: number, now: number): void {
    const account = this.refilled(network, now) ?? { tokens: this.limits.burst, refilledAt: now };
    // Handshakes that were under way when the bucket ran empty cost no more than one burst.
    account.tokens = Math.max(-this.limits.burst, account.tokens - cost);
    this.accounts.delete(network);
    this.accounts.set(network, account);
    if (this.accounts.size > mostNetworks) this.accounts.delete(this.accounts.keys().next().value as string);
  }

  /** Whether a handshake of the network may begin. */
  mayBegin(network: string, now: number): boolean {
    const account = this.refilled(network, now);
    return account === null || account.tokens >= 1;
  }

  /** @returns the network's account; null when nothing is held against it */
  private refilled(network: string, now: number): Account | null {
    const account = this.accounts.get(network);
    if (account === undefined) return null;
    account.tokens += (Math.max(0, now - account.refilledAt) * this.limits.perSecond) / 1000;
    account.refilledAt = now;
    if (account.tokens < this.limits.burst) return account;
    this.accounts.delete(network);
    return null;
  }
}
