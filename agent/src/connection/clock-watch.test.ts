import { expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { watchClock } from './clock-watch.ts';

class SettableClock extends ManualClock {
  setBy = 0;
  override now(): number {
    return super.now() + this.setBy;
  }
}

test('reports once that the clock was set, but ignores regular corrections', () => {
  const clock = new SettableClock();
  const said: object[] = [];
  let reports = 0;
  const log = { debug() {}, info() {}, error() {}, warn: (fields: object) => void said.push(fields) };
  const end = watchClock(clock, log, () => reports++);
  clock.advance(120_000);
  clock.setBy = 4_000;
  clock.advance(120_000);
  expect([reports, said]).toEqual([0, []]);
  clock.setBy = -3_600_000;
  clock.advance(60_000);
  expect([reports, said]).toEqual([1, [{ by_ms: -3_600_000 }]]);
  clock.advance(600_000);
  expect(reports).toBe(1);
  end();
  clock.setBy = 0;
  clock.advance(600_000);
  expect(reports).toBe(1);
  expect(clock.next).toBeNull();
});
