import { expect, test } from 'vitest';
import type { Key } from '../query-keys.ts';
import { createStaleness } from './staleness.ts';

/** Uses a fake clock that the test advances. */
function underTest() {
  let now = 0;
  let timers: { at: number; act: () => void }[] = [];
  const marked: [number, Key][] = [];
  const updates: number[] = [];
  const staleness = createStaleness({
    mark: (key, since) => {
      marked.push([now, key]);
      updates.push(since);
    },
    now: () => now,
    after: (ms, act) => {
      const timer = { at: now + ms, act };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  });
  const until = (end: number) => {
    for (;;) {
      const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      timers = timers.filter((timer) => timer !== next);
      now = next.at;
      next.act();
    }
    now = end;
  };
  return { staleness, marked, updates, until, waiting: () => timers.length };
}

test('marks a key soon after the first event, then at most every two seconds', () => {
  const { staleness, marked, until, waiting } = underTest();
  for (let ms = 0; ms < 5000; ms += 20) {
    until(ms);
    staleness.add(['agents']);
  }
  until(60_000);
  expect(marked.map(([at]) => at)).toEqual([60, 2060, 4060, 6060]);
  expect(waiting()).toBe(0);
});

test.each([
  ['the narrow key is added first', [['audit', 'page'], ['audit'], []]],
  ['the broad key is added first', [[], ['audit'], ['audit', 'page']]],
] as [string, Key[]][])('marks only the broadest of several pending keys: %s', (_, keys) => {
  const { staleness, marked, until } = underTest();
  for (const key of keys) staleness.add(key);
  until(1000);
  expect(marked).toEqual([[60, []]]);
  // Events that arrive after the mark are reported as well.
  staleness.add(['audit', 'page']);
  until(10_000);
  expect(marked.slice(1)).toEqual([[2060, ['audit', 'page']]]);
});

test('reports the time of the last event for a key or for a narrower key', () => {
  const { staleness, updates, until } = underTest();
  staleness.add(['agents']);
  until(40);
  staleness.add(['agents']);
  until(1000);
  staleness.add(['agents']);
  until(1500);
  staleness.add([]);
  until(1520);
  staleness.add(['agents', 'page']);
  until(10_000);
  expect(updates).toEqual([40, 1520]);
});
