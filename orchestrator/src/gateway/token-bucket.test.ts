import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

test('returns the milliseconds until borrowed tokens are refilled', () => {
  const bucket = new TokenBucket(2, 0);
  const owe = (now: number) => bucket.owe(now, 10, 2);
  expect([owe(0), owe(0), owe(0), owe(0)]).toEqual([0, 0, 100, 200]);
  expect(owe(100)).toBe(200);
  expect(owe(100)).toBe(300);
  expect(bucket.take(300, 10, 2)).toBe(false);
  expect(owe(600)).toBe(0);
  expect([owe(100_000), owe(100_000), owe(100_000)]).toEqual([0, 0, 100]);
});
