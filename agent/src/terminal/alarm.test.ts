import { beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../lib/src/clock.ts';
import { Alarm } from './alarm.ts';

let now = 0;
let timers: { at: number; action: () => void }[] = [];
const clock: Clock = {
  now: () => now,
  monotonic: () => now,
  after(ms, action) {
    const timer = { at: now + ms, action };
    timers.push(timer);
    return () => {
      timers = timers.filter((other) => other !== timer);
    };
  },
};

function passUntil(time: number): void {
  for (;;) {
    const due = timers.filter(({ at }) => at <= time).sort((a, b) => a.at - b.at)[0];
    if (due === undefined) break;
    now = Math.max(now, due.at);
    timers = timers.filter((timer) => timer !== due);
    due.action();
  }
  now = time;
}

describe('the alarm', () => {
  beforeEach(() => {
    now = 100.4;
    timers = [];
  });

  test('wakes each sleeper once and not too early, with at most one timer at a time', () => {
    const alarm = new Alarm<{ wake(): void }>(clock);
    const woken: [string, number][] = [];
    const sleeper = (name: string) => ({ wake: () => void woken.push([name, now]) });
    const [a, b, c] = [sleeper('a'), sleeper('b'), sleeper('c')];
    alarm.set(a, 120);
    alarm.set(b, 110.9);
    alarm.set(c, 115);
    alarm.set(c, null);
    expect(timers).toHaveLength(1);
    passUntil(200);
    expect(woken.map(([name]) => name)).toEqual(['b', 'a']);
    expect(woken[0]![1]).toBeGreaterThanOrEqual(110.9);
    expect(woken[1]![1]).toBeGreaterThanOrEqual(120);
    expect(timers).toHaveLength(0);
  });

  test('accepts a new request from a sleeper while it is being woken', () => {
    const alarm = new Alarm<{ wake(): void }>(clock);
    let times = 0;
    const again = { wake: () => void (++times < 3 && alarm.set(again, now + 5)) };
    alarm.set(again, 101);
    passUntil(300);
    expect(times).toBe(3);
    expect(timers).toHaveLength(0);
  });
});
