import { randomBytes } from 'node:crypto';

/** Allowed request ids of clients and proxies; safe to log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * @returns a function that takes the id in the request's header, if any, and returns it if it is valid; otherwise
 *   generates an id that is unique while logs are kept. Counting is cheaper than random bytes.
 */
export function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}
