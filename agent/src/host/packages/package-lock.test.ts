import { expect, test } from 'vitest';
import { untilUnlocked } from './package-lock.ts';

/** Simulates a machine whose clock advances only while the code waits. */
function waiting(limitMs: number) {
  let now = 0;
  const stop = new AbortController();
  let isCancelled = false;
  const context = {
    clock: {
      now: () => now,
      monotonic: () => now,
      after: (ms: number, action: () => void) => {
        now += ms;
        queueMicrotask(action);
        return () => {};
      },
    },
    limits: { packageMs: 1, packageLockMs: limitMs, outputBytes: 1 },
    stop: stop.signal,
    cancelled: () => isCancelled,
  };
  let tries = 0;
  const run = (onTry: (count: number) => string) =>
    untilUnlocked(
      async () => onTry(++tries),
      context,
      (result) => result === 'locked',
    );
  return { run, stop: () => stop.abort(), cancel: () => (isCancelled = true), tries: () => tries };
}

test('retries until another process releases the lock', async () => {
  const { run } = waiting(60_000);
  expect(await run((count) => (count < 7 ? 'locked' : 'done'))).toBe('done');
});

test('returns the last result if the lock is held for longer than the limit', async () => {
  const { run, tries } = waiting(10_000);
  expect(await run(() => 'locked')).toBe('locked');
  expect(tries()).toBe(12);
});

test.each([
  ['the operation is canceled', 'cancel' as const, /because the operation was canceled/],
  ['the agent stops', 'stop' as const, /because the agent is stopping/],
])('does not retry after %s', async (_, how, message) => {
  const wait = waiting(60_000);
  await expect(
    wait.run((count) => {
      if (count === 3) wait[how]();
      return 'locked';
    }),
  ).rejects.toThrow(message);
  expect(wait.tries()).toBe(3);
});

test('returns the result of an attempt that acquired the lock, even if the operation was canceled', async () => {
  const wait = waiting(60_000);
  expect(
    await wait.run(() => {
      wait.cancel();
      return 'done';
    }),
  ).toBe('done');
});
