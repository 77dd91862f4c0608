import { describe, expect, test } from 'vitest';
import type { Clock } from './clock.ts';
import { type Notify, serviceManager } from './service-manager.ts';

/** Returns a clock whose timers fire on demand. */
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
  const notify: Notify = (words, ended) => {
    said.push(words.join(' '));
    ends.push(ended);
  };
  const hand = handClock();
  const manager = serviceManager(env, 'agent', hand.clock, (message) => warnings.push(message), notify);
  return { manager, said, ends, warnings, env, ...hand };
}

describe('the service manager', () => {
  test('returns null without a notification socket', () => {
    expect(started({ PATH: '/bin' }).manager).toBeNull();
  });

  test('reports readiness, then sends three watchdog notifications within the timeout', () => {
    const { manager, said, ends, calls, turn, env } = started();
    expect(env).toEqual({ PATH: '/bin' });
    manager?.ready('up');
    expect(said).toEqual(['--ready --status=up']);
    expect(calls.map(({ ms }) => ms)).toEqual([60_000]);
    turn();
    expect(said).toEqual(['--ready --status=up', 'WATCHDOG=1']);
    // Schedules the next notification after sending the last notification.
    expect(calls).toHaveLength(0);
    ends[1]?.(null);
    expect(calls.map(({ ms }) => ms)).toEqual([60_000]);
  });

  test('sends no watchdog notifications after reporting that it is stopping', () => {
    const { manager, said, turn } = started();
    manager?.ready('up');
    manager?.stopping();
    turn();
    expect(said).toEqual(['--ready --status=up', 'STOPPING=1']);
  });

  test('sends no watchdog notifications without a watchdog, or with one for another process', () => {
    for (const env of [environment({ WATCHDOG_USEC: '0' }), environment({ WATCHDOG_PID: '1' })]) {
      const { manager, calls } = started(env);
      manager?.ready('up');
      expect(calls).toHaveLength(0);
    }
  });

  test('warns once if systemd cannot be notified', () => {
    const { manager, ends, warnings, turn } = started();
    manager?.ready('up');
    ends[0]?.('no such program');
    turn();
    ends[1]?.('no such program');
    expect(warnings).toEqual(['no such program']);
  });
});
