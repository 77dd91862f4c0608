import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { letsAgentsGo, type ReplicaSituation, startLinkRelease } from './link-release.ts';

describe('a replica lets its agents go', () => {
  test.each([
    [{ draining: false, beatAgeMs: 8_999, runningMs: 60_000, hasReadyPeer: true }, false],
    [{ draining: false, beatAgeMs: 9_000, runningMs: 60_000, hasReadyPeer: true }, true],
    [{ draining: false, beatAgeMs: 60_000, runningMs: 3_999, hasReadyPeer: true }, false],
    [{ draining: false, beatAgeMs: 60_000, runningMs: 4_000, hasReadyPeer: true }, true],
    [{ draining: false, beatAgeMs: 60_000, runningMs: 60_000, hasReadyPeer: false }, false],
    [{ draining: true, beatAgeMs: 0, runningMs: 0, hasReadyPeer: true }, true],
    [{ draining: true, beatAgeMs: 0, runningMs: 0, hasReadyPeer: false }, false],
  ])('%j: %s', (situation, expected) => {
    expect(letsAgentsGo(situation)).toBe(expected);
  });
});

test('closes links at the configured rate, and stops when the database is available again', () => {
  const clock = new ManualClock();
  let situation: Omit<ReplicaSituation, 'runningMs'> = { draining: false, beatAgeMs: 0, hasReadyPeer: true };
  let begun = 0;
  let perSecond = 400;
  const released: number[] = [];
  const stop = startLinkRelease({
    clock,
    situation: () => situation,
    perSecond: () => perSecond,
    release: (count) => released.push(count),
    onBegin: () => begun++,
  });
  const pass = (ms: number) => {
    released.length = 0;
    for (let passed = 0; passed < ms; passed += 250) clock.advance(250);
    return released.reduce((sum, count) => sum + count, 0);
  };
  expect(pass(5_000)).toBe(0);
  situation = { ...situation, beatAgeMs: 9_000 };
  expect(pass(2_000)).toBe(800);
  perSecond = 3;
  expect(pass(4_000)).toBe(12);
  situation = { ...situation, beatAgeMs: 10 };
  expect(pass(2_000)).toBe(0);
  expect(begun).toBe(1);
  situation = { ...situation, draining: true };
  expect(pass(1_000)).toBe(3);
  expect(begun).toBe(2);
  stop();
  expect(clock.next).toBeNull();
});

test('keeps the agents of a suspended process until its next heartbeat has had time to fail', () => {
  const clock = new ManualClock();
  let beatAt = clock.monotonic();
  let released = 0;
  const stop = startLinkRelease({
    clock,
    situation: () => ({ draining: false, beatAgeMs: clock.monotonic() - beatAt, hasReadyPeer: true }),
    perSecond: () => 400,
    release: (count) => (released += count),
    onBegin: () => {},
  });
  clock.advance(5_000);
  beatAt = clock.monotonic();
  clock.stall(20_000);
  clock.advance(3_999);
  expect(released).toBe(0);
  clock.advance(1_000);
  expect(released).toBe(400);
  beatAt = clock.monotonic();
  clock.advance(10_000);
  // The heartbeats fail again, in a process that was not suspended.
  expect(released).toBeGreaterThanOrEqual(800);
  stop();
});
