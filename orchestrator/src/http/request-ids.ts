import { randomBytes } from 'node:crypto';

/** Format of request IDs from clients and proxies that are safe to log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * @returns a function that returns the ID in the request's header or, without a valid ID, a new unique ID. New IDs
 *   contain a counter, because generating random bytes is more expensive.
 */
export function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}
