import { siteNetworkOf } from '../client-network.ts';

export interface RefusedHelloLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Maximum number of remembered networks. A further one evicts the least recently charged. */
const maxNetworks = 1024;

/** Factor between the limits of a /48 and of one network: one client may own all 65,536 networks of a /48. */
const wideScale = 8;

interface Account {
  /** Remaining tokens. Below 1, the network waits. Negative after parallel handshakes. */
  tokens: number;
  refilledAt: number;
}

/** Delays networks whose hellos are refused, with a token bucket for each. Times are monotonic milliseconds. */
export class RefusedHellos {
  private readonly limits: RefusedHelloLimits;
  /** Charged networks, least recent first. */
  private readonly accounts = new Map<string, Account>();

  constructor(limits: RefusedHelloLimits) {
    this.limits = limits;
  }

  /** Charges a refused hello to its network. @param cost 1 for a refusal of full weight */
  charge(network: string, cost: number, now: number): void {
    for (const { name, scale } of scopesOf(network)) {
      const burst = this.limits.burst * scale;
      const account = this.refilled(name, scale, now) ?? { tokens: burst, refilledAt: now };
      // Handshakes already in progress when the bucket ran empty cost at most one burst.
      account.tokens = Math.max(-burst, account.tokens - cost);
      this.accounts.delete(name);
      this.accounts.set(name, account);
      if (this.accounts.size > maxNetworks) this.accounts.delete(this.accounts.keys().next().value as string);
    }
  }

  /** Whether a handshake of the network may begin. */
  mayBegin(network: string, now: number): boolean {
    return scopesOf(network).every(({ name, scale }) => (this.refilled(name, scale, now)?.tokens ?? 1) >= 1);
  }

  /** @returns the bucket of the network; null if its bucket is full */
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

/** The buckets that a refusal is charged to: that of the network, and for IPv6 also that of its /48. */
function scopesOf(network: string): { name: string; scale: number }[] {
  const wide = siteNetworkOf(network);
  return wide === network
    ? [{ name: network, scale: 1 }]
    : [
        { name: network, scale: 1 },
        { name: wide, scale: wideScale },
      ];
}
