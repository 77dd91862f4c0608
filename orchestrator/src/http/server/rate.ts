import { hash, randomBytes } from 'node:crypto';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { networkOf } from '../../client-network.ts';
import { RefusedRequest } from './problem.ts';

export interface Rates {
  /** Rate and burst of sign-in requests from a single address. */
  readonly signIn: { readonly perMinute: number; readonly burst: number };
  /** Maximum number of requests per second in a sign-in session. */
  readonly sessionPerSecond: number;
}

/** Rate limit of WebSocket upgrades by address. */
export interface TicketRate {
  /** Counts a request. Rejects with `rate_limited` if the request exceeds the limit. */
  consume(address: string): Promise<void>;
  /** Removes a request with a valid ticket from the count, so that only invalid tickets count. */
  giveBack(address: string): void;
}

export const defaultRates: Rates = { signIn: { perMinute: 60, burst: 30 }, sessionPerSecond: 1000 };

/** Number of counters. Addresses share counters, so that memory does not grow with the number of addresses. */
const addressSlots = 65_536;

/**
 * Creates the rate limits for requests.
 * @returns functions that count a request, and throw or reject with `rate_limited` if it exceeds a limit
 */
export function createRates(rates: Rates) {
  // Uses a salt, because without one, a client could choose addresses that share another client's counter.
  const salt = randomBytes(16).toString('hex');
  return {
    /** @param address the client's IP address */
    signIn: addressRate(rates.signIn, salt, 'sign-in requests').consume,
    /** Limits connections with invalid terminal tickets, at the sign-in rate. */
    ticket: addressRate(rates.signIn, salt, 'connections with invalid tickets') as TicketRate,
    session: countEachSecond(rates.sessionPerSecond),
  };
}

function addressRate({ perMinute, burst }: Rates['signIn'], salt: string, what: string) {
  const minute = new RateLimiterMemory({ points: perMinute, duration: 60 });
  // The duration is the number of seconds in which the rate refills an exhausted burst.
  const atOnce = new RateLimiterMemory({ points: burst, duration: Math.max(1, Math.ceil((burst * 60) / perMinute)) });
  return {
    async consume(address: string): Promise<void> {
      const slot = slotOf(address, salt);
      // Checked before the per-minute rate, so that a request above the burst does not count toward that rate.
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
 * Returns a function that limits the requests in a session. Synchronous, because it runs for every request. All
 * sessions share one-second windows, so that all counts are discarded together.
 */
function countEachSecond(max: number): (tokenHash: string) => void {
  const counts = new Map<string, number>();
  let secondEnds = 0;
  return (tokenHash) => {
    const now = performance.now();
    if (now >= secondEnds) {
      counts.clear();
      secondEnds = now + 1000;
    }
    const count = (counts.get(tokenHash) ?? 0) + 1;
    if (count > max)
      throw new RefusedRequest('rate_limited', 'Too many requests in this session.', { 'retry-after': '1' });
    counts.set(tokenHash, count);
  };
}

/**
 * Limits discovery, because each request makes this machine send datagrams to other machines.
 * @returns a function that resolves if the operator may continue, and otherwise rejects with `rate_limited`
 */
export function createDiscoveryRate() {
  const minute = new RateLimiterMemory({ points: 60, duration: 60 });
  const atOnce = new RateLimiterMemory({ points: 20, duration: 20 });
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
