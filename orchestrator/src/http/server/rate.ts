import { hash, randomBytes } from 'node:crypto';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from '../../client-network.ts';
import { RefusedRequest } from './problem.ts';

export interface Rates {
  /** Limits of sign-in requests for one address. */
  readonly signIn: { readonly perMinute: number; readonly burst: number };
  /** Maximum requests per second of one sign-in session. */
  readonly sessionPerSecond: number;
}

/** Limits WebSocket upgrades by address. */
export interface TicketRate {
  /** Counts a request. Rejects with `rate_limited` above the limit. */
  spend(address: string): Promise<void>;
  /** Reverts the count of a request whose ticket is valid, so that only guesses count. */
  giveBack(address: string): void;
}

export const defaultRates: Rates = { signIn: { perMinute: 60, burst: 30 }, sessionPerSecond: 1000 };

/** Number of counters that addresses share, which bounds the memory for any number of addresses. */
const addressSlots = 65_536;

/**
 * Counts requests and refuses those over the limits.
 * @returns functions that throw or reject with `rate_limited` when a request is over its limit
 */
export function createRates(rates: Rates) {
  // Without the salt, a client could choose addresses that share another's counter.
  const salt = randomBytes(16).toString('hex');
  return {
    /** @param address the client's IP address */
    signIn: addressRate(rates.signIn, salt, 'sign-in requests').spend,
    /** Limits tickets of terminals, with the rates of sign-ins. */
    ticket: addressRate(rates.signIn, salt, 'connections with invalid tickets') as TicketRate,
    session: countEachSecond(rates.sessionPerSecond),
  };
}

function addressRate({ perMinute, burst }: Rates['signIn'], salt: string, what: string) {
  const minute = new RateLimiterMemory({ points: perMinute, duration: 60 });
  // Seconds in which the allowed rate refills one burst.
  const atOnce = new RateLimiterMemory({ points: burst, duration: Math.max(1, Math.ceil((burst * 60) / perMinute)) });
  return {
    async spend(address: string): Promise<void> {
      const slot = slotOf(address, salt);
      // The burst is checked first, so that a request that is refused here does not count for its minute.
      await admit(atOnce, slot, `Too many ${what} from this address at once.`);
      await admit(minute, slot, `Too many ${what} from this address.`);
    },
    giveBack(address: string): void {
      const slot = slotOf(address, salt);
      for (const limiter of [atOnce, minute]) void limiter.reward(slot);
    },
  };
}

/**
 * Limits requests of a session. Synchronous, because it runs for every request. All sessions use the same one-second
 * windows, so that all counts are discarded together.
 */
function countEachSecond(most: number): (tokenHash: string) => void {
  const counts = new Map<string, number>();
  let secondEnds = 0;
  return (tokenHash) => {
    const now = performance.now();
    if (now >= secondEnds) {
      counts.clear();
      secondEnds = now + 1000;
    }
    const count = (counts.get(tokenHash) ?? 0) + 1;
    if (count > most)
      throw new RefusedRequest('rate_limited', 'Too many requests in this session.', { 'retry-after': '1' });
    counts.set(tokenHash, count);
  };
}

/**
 * Limits discovery, because each request makes this machine send data to others that did not request it.
 * @returns a function that resolves when the operator may continue, otherwise rejects with `rate_limited`
 */
export function createDiscoveryRate({ perMinute = 60, burst = 20 } = {}) {
  const minute = new RateLimiterMemory({ points: perMinute, duration: 60 });
  const atOnce = new RateLimiterMemory({ points: burst, duration: Math.max(1, Math.ceil((burst * 60) / perMinute)) });
  return async (operatorId: string): Promise<void> => {
    await admit(atOnce, operatorId, 'Too many announcements by this operator at once.');
    await admit(minute, operatorId, 'Too many announcements by this operator.');
  };
}

const slotOf = (address: string, salt: string): string =>
  String(Number.parseInt(hash('sha256', salt + networkOf(address), 'hex').slice(0, 8), 16) % addressSlots);

function admit(limiter: RateLimiterMemory, key: string, detail: string): Promise<void> {
  return limiter.consume(key).then(ignore, (refusal: RateLimiterRes | Error) => {
    if (refusal instanceof Error) throw refusal;
    const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
    throw new RefusedRequest('rate_limited', detail, { 'retry-after': String(seconds) });
  });
}

const ignore = (): void => {};
