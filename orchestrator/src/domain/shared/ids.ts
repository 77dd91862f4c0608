import { decodeTime, monotonicFactory, type PRNG } from 'ulid';
import type { Context } from './context.ts';

/**
 * Creates a generator of increasing ULIDs.
 * @param now returns Unix milliseconds, which may go backward
 * @param random returns numbers in [0, 1); by default, a secure generator that makes a system call for each
 */
export function createIds(now: () => number, random?: PRNG): Pick<Context, 'newId' | 'passId'> {
  const ulid = monotonicFactory(random);
  let earliest = 0;
  return {
    newId: () => ulid(Math.max(now(), earliest)),
    passId: (id) => {
      earliest = Math.max(earliest, decodeTime(id) + 1);
    },
  };
}
