import { randomBytes } from 'node:crypto';

/** Request ids from clients and proxies that are safe to log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * @returns a function that returns the id in the request's header or, if there is no valid id, a new unique one. New ids
 * contain a counter, which is cheaper than random bytes.
 */
export function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}
