import { siteNetworkOf } from '../../client-network.ts';

export interface RefusedHelloLimits {
  readonly perSecond: number;
  readonly burst: number;
}

/** Maximum number of stored networks. Adding a network beyond it evicts the least recently charged network. */
const maxNetworks = 1024;

/**
 * Factor by which the limits of a /48 exceed those of a single network. One client may own all 65,536 networks of a
 * /48.
 */
const wideScale = 8;

interface Account {
  /**
   * Remaining tokens. Below 1, the network must wait. May be negative, because handshakes in progress are charged
   * afterward.
   */
  tokens: number;
  refilledAt: number;
}

/** Delays networks whose hellos are refused. Each network has a token bucket. Times are monotonic milliseconds. */
export class RefusedHellos {
  private readonly limits: RefusedHelloLimits;
  /** Networks with used tokens, least recently charged first. */
  private readonly accounts = new Map<string, Account>();

  constructor(limits: RefusedHelloLimits) {
    this.limits = limits;
  }

  /** Charges a refused hello to its network. @param cost in tokens; 1 for a full-weight refusal */
  charge(network: string, cost: number, now: number): void {
    for (const { name, scale } of scopesOf(network)) {
      const burst = this.limits.burst * scale;
      const account = this.refilled(name, scale, now) ?? { tokens: burst, refilledAt: now };
      // Limits the debt from handshakes that were in progress when the bucket became empty.
      account.tokens = Math.max(-burst, account.tokens - cost);
      this.accounts.delete(name);
      this.accounts.set(name, account);
      if (this.accounts.size > maxNetworks) this.accounts.delete(this.accounts.keys().next().value as string);
    }
  }

  /** Reports whether a handshake from the network may begin. */
  mayBegin(network: string, now: number): boolean {
    return scopesOf(network).every(({ name, scale }) => (this.refilled(name, scale, now)?.tokens ?? 1) >= 1);
  }

  /** @returns the refilled bucket; null if it is full */
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

/** Returns the buckets to charge: the bucket of the network and, for IPv6, the bucket of its /48. */
function scopesOf(network: string): { name: string; scale: number }[] {
  const wide = siteNetworkOf(network);
  return wide === network
    ? [{ name: network, scale: 1 }]
    : [
        { name: network, scale: 1 },
        { name: wide, scale: wideScale },
      ];
}
