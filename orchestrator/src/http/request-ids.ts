import { randomBytes } from 'node:crypto';

/** Allowed request ids of clients and proxies; safe to log. */
const givenId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @returns the id of a request: its own, or a generated one, unique while logs are kept, and cheaper than random bytes. */
export function requestIds(): (given?: string | string[] | undefined) => string {
  const run = randomBytes(6).toString('hex');
  let count = 0;
  return (given) => (typeof given === 'string' && givenId.test(given) ? given : `${run}-${(++count).toString(36)}`);
}
