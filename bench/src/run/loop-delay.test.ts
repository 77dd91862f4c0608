import { describe, expect, test } from 'vitest';
import { LoopDelay } from './loop-delay.ts';
import { quantiles } from './quantiles.ts';

describe('loop delay', () => {
  test('includes the whole duration of a stall in the loop delay', async () => {
    const probe = new LoopDelay();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const until = performance.now() + 100;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const delay = probe.stop();
    expect(delay.max).toBeGreaterThan(95);
    // The loop stalled for two thirds of the time, which delayed more than half of the probes.
    expect(delay.p50).toBeGreaterThan(10);
  });

  test('includes a stall that is not over in the loop delay', () => {
    const probe = new LoopDelay();
    const until = performance.now() + 30;
    while (performance.now() < until);
    expect(probe.stop().max).toBeGreaterThan(25);
  });

  test('returns exact quantiles of the input, and zeros without input', () => {
    const values = Array.from({ length: 100 }, (_, n) => n + 1);
    expect(quantiles(values)).toEqual({ p50: 51, p99: 100, max: 100 });
    expect(quantiles([])).toEqual({ p50: 0, p99: 0, max: 0 });
  });
});
