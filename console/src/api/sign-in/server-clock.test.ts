import { expect, test } from 'vitest';
import { createServerClock } from './server-clock.ts';

const at = Date.UTC(2026, 10, 22, 7);
const dated = (ms: number) => new Date(ms).toUTCString();

test('a clock that is hours wrong is put right by what the orchestrator says', () => {
  let browser = at + 3 * 3_600_000;
  const clock = createServerClock(() => browser);
  expect(clock.now()).toBe(browser);
  clock.heard(dated(at));
  expect(clock.now()).toBe(at);
  browser += 1_234;
  expect(clock.now()).toBe(at + 1_234);
  // Somebody sets it right: the next answer says so.
  browser = at + 10_000;
  clock.heard(dated(at + 10_000));
  expect(clock.now()).toBe(browser);
});

test('what an answer took on its way is no difference, and what is no date says nothing', () => {
  const clock = createServerClock(() => at);
  clock.heard(dated(at - 4_000));
  expect(clock.now()).toBe(at);
  clock.heard(null);
  clock.heard('yesterday');
  expect(clock.now()).toBe(at);
});
