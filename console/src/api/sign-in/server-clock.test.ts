import { expect, test } from 'vitest';
import { createServerClock } from './server-clock.ts';

const at = Date.UTC(2026, 10, 22, 7);
const dated = (ms: number) => new Date(ms).toUTCString();

test('corrects a browser clock that is hours off, using the Date headers of responses', () => {
  let browser = at + 3 * 3_600_000;
  const clock = createServerClock(() => browser);
  expect(clock.now()).toBe(browser);
  clock.observe(dated(at), browser);
  expect(clock.now()).toBe(at);
  browser += 1_234;
  expect(clock.now()).toBe(at + 1_234);
  // The operator corrected the browser's clock.
  browser = at + 10_000;
  clock.observe(dated(at + 10_000), browser);
  expect(clock.now()).toBe(browser);
});

test('ignores differences of a few seconds and invalid dates', () => {
  const clock = createServerClock(() => at);
  clock.observe(dated(at - 4_000), at);
  expect(clock.now()).toBe(at);
  clock.observe(null, at);
  clock.observe('yesterday', at);
  expect(clock.now()).toBe(at);
});

test('does not change the estimate after a slow response', () => {
  let browser = at;
  const clock = createServerClock(() => browser);
  browser += 9_000;
  clock.observe(dated(at), at);
  expect(clock.now()).toBe(browser);
  browser += 3_600_000;
  clock.observe(dated(at), browser);
  const corrected = clock.now();
  const requestedAt = browser;
  browser += 9_000;
  clock.observe(dated(at), requestedAt);
  expect(clock.now()).toBe(corrected + 9_000);
});
