import { widerOf } from '../client-network.ts';

export interface RefusedHelloLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Networks that are remembered; further ones take the place of the one that was charged least recently. */
const mostNetworks = 1024;

/** How many times what one network may a /48 may: there are 65,536 networks in it, and all may be one client's. */
const wideScale = 8;

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
    for (const { name, scale } of scopesOf(network)) {
      const burst = this.limits.burst * scale;
      const account = this.refilled(name, scale, now) ?? { tokens: burst, refilledAt: now };
      // Handshakes that were under way when the bucket ran empty cost no more than one burst.
      account.tokens = Math.max(-burst, account.tokens - cost);
      this.accounts.delete(name);
      this.accounts.set(name, account);
      if (this.accounts.size > mostNetworks) this.accounts.delete(this.accounts.keys().next().value as string);
    }
  }

  /** Whether a handshake of the network may begin. */
  mayBegin(network: string, now: number): boolean {
    return scopesOf(network).every(({ name, scale }) => (this.refilled(name, scale, now)?.tokens ?? 1) >= 1);
  }

  /** @returns the account; null when nothing is held against it */
  private refilled(name: string, scale: number, now: number): Account | null {
    const account = this.accounts.get(name);
    if (account === undefined) return null;
    account.tokens += (Math.max(0, now - account.refilledAt) * this.limits.perSecond * scale) / 1000;
    account.refilledAt = now;
    if (account.tokens < this.limits.burst * scale) return account;
    this.accounts.delete(name);
    return null;
  }
}

/** Whose bucket a refusal is taken from: the network's, and for IPv6 the larger one of its /48. */
function scopesOf(network: string): { name: string; scale: number }[] {
  const wide = widerOf(network);
  return wide === network
    ? [{ name: network, scale: 1 }]
    : [
        { name: network, scale: 1 },
        { name: wide, scale: wideScale },
      ];
}
