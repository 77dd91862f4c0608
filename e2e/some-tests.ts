import { everyNth } from '../lib/test/sampled.ts';

/**
 * Returns a function like `test` for slow tests that do not depend on each other. `npm test` runs every n-th of them,
 * starting with a random one; a direct run and `npm run soak -- kill-steps` run all.
 * @param use name of this set of tests
 */
export function someTests<T extends (...args: never[]) => unknown>(test: T, n: number, use: string): T {
  const isNext = everyNth(n, use);
  return ((...args: Parameters<T>) => (isNext() ? test(...args) : undefined)) as T;
}
