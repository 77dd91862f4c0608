import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../../lib/src/clock.ts';
import { type Say, serviceManager } from './service-manager.ts';

/** A clock whose calls are made by hand. */
function handClock() {
  const calls: { ms: number; action: () => void }[] = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (ms, action) => {
      calls.push({ ms, action });
      return () => {};
    },
  };
  return { clock, calls, turn: () => calls.shift()?.action() };
}

const environment = (more: Record<string, string> = {}) => ({
  PATH: '/bin',
  NOTIFY_SOCKET: '/run/systemd/notify',
  WATCHDOG_USEC: '180000000',
  WATCHDOG_PID: String(process.pid),
  ...more,
});

function started(env: NodeJS.ProcessEnv = environment()) {
  const said: string[] = [];
  const ends: ((failure: string | null) => void)[] = [];
  const warnings: string[] = [];
  const say: Say = (words, ended) => {
    said.push(words.join(' '));
    ends.push(ended);
  };
  const hand = handClock();
  const manager = serviceManager(env, hand.clock, (message) => warnings.push(message), say);
  return { manager, said, ends, warnings, env, ...hand };
}

describe('systemd', () => {
  test('is told of nothing when it does not listen', () => {
    expect(started({ PATH: '/bin' }).manager).toBeNull();
  });

  test('is told that it is up, and thrice within its limit that the loop turns', () => {
    const { manager, said, ends, calls, turn, env } = started();
    expect(env).toEqual({ PATH: '/bin' });
    manager?.ready();
    expect(said).toEqual(['--ready']);
    expect(calls.map(({ ms }) => ms)).toEqual([60_000]);
    turn();
    expect(said).toEqual(['--ready', 'WATCHDOG=1']);
    // Not before the one before was said.
    expect(calls).toHaveLength(0);
    ends[1]?.(null);
    expect(calls.map(({ ms }) => ms)).toEqual([60_000]);
  });

  test('hears nothing of a life that is ending, once told of the end', () => {
    const { manager, said, turn } = started();
    manager?.ready();
    manager?.stopping();
    turn();
    expect(said).toEqual(['--ready', 'STOPPING=1']);
  });

  test('is not told that the loop turns where it did not ask, or asked another process', () => {
    for (const env of [environment({ WATCHDOG_USEC: '0' }), environment({ WATCHDOG_PID: '1' })]) {
      const { manager, calls } = started(env);
      manager?.ready();
      expect(calls).toHaveLength(0);
    }
  });

  test('which cannot be told is worth one warning', () => {
    const { manager, ends, warnings, turn } = started();
    manager?.ready();
    ends[0]?.('no such program');
    turn();
    ends[1]?.('no such program');
    expect(warnings).toEqual(['no such program']);
  });
});
