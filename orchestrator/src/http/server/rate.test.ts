import { MusterError } from '@muster/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { networkOf } from '../../client-network.ts';
import type { RefusedRequest } from './problem.ts';
import { createDiscoveryRate, createRates, defaultRates } from './rate.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/**
 * Calls `request` `times` times.
 * @returns the number of admitted requests and the last refusal
 */
async function letIn(
  request: () => Promise<void>,
  times: number,
): Promise<{ admitted: number; refused?: RefusedRequest }> {
  let admitted = 0;
  let refused: RefusedRequest | undefined;
  for (let at = 0; at < times; at++) {
    await request().then(
      () => {
        admitted += 1;
      },
      (error: unknown) => {
        expect(error).toBeInstanceOf(MusterError);
        refused = error as RefusedRequest;
      },
    );
  }
  return { admitted, ...(refused ? { refused } : {}) };
}

describe('rates', () => {
  test('allows 30 sign-ins in a burst and 60 per minute, then returns Retry-After', async () => {
    const rates = createRates(defaultRates);
    const from = (address: string) => () => rates.signIn(address);
    const first = await letIn(from('192.0.2.1'), 31);
    expect(first.admitted).toBe(30);
    expect(first.refused?.code).toBe('rate_limited');
    expect(first.refused?.headers['retry-after']).toBe('30');
    expect((await letIn(from('192.0.2.2'), 1)).admitted).toBe(1);
    vi.advanceTimersByTime(30_000);
    expect((await letIn(from('192.0.2.1'), 31)).admitted).toBe(30);
    vi.advanceTimersByTime(29_000);
    expect((await letIn(from('192.0.2.1'), 1)).refused?.headers['retry-after']).toBe('1');
    vi.advanceTimersByTime(1_000);
    expect((await letIn(from('192.0.2.1'), 1)).admitted).toBe(1);
  });

  test('allows 20 announcements in a burst and 60 per minute for each operator', async () => {
    const admit = createDiscoveryRate();
    const first = await letIn(() => admit('ada'), 21);
    expect([first.admitted, first.refused?.code]).toEqual([20, 'rate_limited']);
    expect((await letIn(() => admit('bob'), 1)).admitted).toBe(1);
    let admitted = first.admitted;
    for (let turn = 0; turn < 2; turn++) {
      vi.advanceTimersByTime(20_000);
      admitted += (await letIn(() => admit('ada'), 21)).admitted;
    }
    expect(admitted).toBe(60);
    vi.advanceTimersByTime(19_000);
    expect((await letIn(() => admit('ada'), 1)).refused?.headers['retry-after']).toBe('1');
  });

  test('limits the requests per second in each session', async () => {
    const rates = createRates({ ...defaultRates, sessionPerSecond: 5 });
    const one = await letIn(async () => rates.session('one'), 6);
    expect(one.admitted).toBe(5);
    expect(one.refused?.headers['retry-after']).toBe('1');
    expect((await letIn(async () => rates.session('other'), 1)).admitted).toBe(1);
    vi.advanceTimersByTime(1000);
    expect((await letIn(async () => rates.session('one'), 1)).admitted).toBe(1);
  });

  test('counts an IPv6 network as one address', async () => {
    const rates = createRates({ ...defaultRates, signIn: { perMinute: 60, burst: 1 } });
    expect((await letIn(() => rates.signIn('2001:db8::1'), 1)).admitted).toBe(1);
    expect((await letIn(() => rates.signIn('2001:db8::2'), 1)).admitted).toBe(0);
    expect((await letIn(() => rates.signIn('2001:db8:0:1::1'), 1)).admitted).toBe(1);
    expect(networkOf('192.0.2.1')).toBe('192.0.2.1');
    expect(networkOf('::ffff:192.0.2.1')).toBe('192.0.2.1');
    expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2');
    expect(networkOf('2001:db8:1:2::')).toBe('2001:db8:1:2');
    expect(networkOf('2001:DB8::5')).toBe('2001:db8:0:0');
    expect(networkOf('1::2:3:4:5:6:7')).toBe('1:0:2:3');
    expect(networkOf('::1')).toBe('0:0:0:0');
    expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0');
    expect(networkOf('64:ff9b::192.0.2.1')).toBe('64:ff9b:0:0');
  });

  test('uses a fixed number of counters for any number of addresses', async () => {
    const rates = createRates({ ...defaultRates, signIn: { perMinute: 1e9, burst: 1e9 } });
    const before = vi.getTimerCount();
    for (let at = 0; at < 8000; at++) await rates.signIn(`10.0.${at >> 8}.${at & 255}`);
    const counters = (vi.getTimerCount() - before) / 2;
    // 8,000 random addresses use 7,533 of 65,536 counters on average, plus or minus 20.
    expect(counters).toBeGreaterThan(7300);
    expect(counters).toBeLessThan(7750);
  });
});
