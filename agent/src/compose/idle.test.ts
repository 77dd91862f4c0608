import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { Idle } from './idle.ts';

let clock: ManualClock;
let isBusy: boolean;
let idle: Idle;
const collect = vi.fn();

beforeEach(() => {
  vi.stubGlobal('gc', collect);
  clock = new ManualClock();
  isBusy = false;
  idle = new Idle(clock, () => !isBusy);
});
afterEach(() => {
  vi.unstubAllGlobals();
  collect.mockReset();
});

test('collects garbage ten seconds after the last report, and once more after a minute', () => {
  idle.worked();
  clock.advance(9_000);
  idle.worked();
  clock.advance(9_999);
  expect(collect).toHaveBeenCalledTimes(0);
  clock.advance(1);
  expect(collect).toHaveBeenCalledTimes(1);
  clock.advance(59_999);
  expect(collect).toHaveBeenCalledTimes(1);
  clock.advance(1);
  expect(collect).toHaveBeenCalledTimes(2);
  clock.advance(86_400_000);
  expect(collect).toHaveBeenCalledTimes(2);
});

test('postpones the collection while an operation is running', () => {
  idle.worked();
  isBusy = true;
  clock.advance(10_000);
  isBusy = false;
  clock.advance(9_999);
  expect(collect).toHaveBeenCalledTimes(0);
  clock.advance(1);
  expect(collect).toHaveBeenCalledTimes(1);
});

test('collects no garbage after it is stopped', () => {
  idle.worked();
  idle.end();
  clock.advance(86_400_000);
  expect(collect).toHaveBeenCalledTimes(0);
});
