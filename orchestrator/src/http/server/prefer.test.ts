import { describe, expect, test } from 'vitest';
import { prefersAsync } from './prefer.ts';

describe('prefersAsync', () => {
  test.each([
    'respond-async',
    'Respond-Async',
    'respond-async, wait=100',
    'wait=100 , respond-async',
    'respond-async; foo="a, b"',
    'foo="a \\" , b", respond-async',
    'respond-async=""',
    'respond-async=',
    ', respond-async',
  ])('detects respond-async in %s', (header) => {
    expect(prefersAsync(header)).toBe(true);
  });

  test.each([
    '',
    'return=minimal',
    'respond-asynchronously',
    'respond-async=no',
    'foo="respond-async"',
    'foo="x, respond-async, y"',
    'foo; respond-async',
    'foo="open, respond-async',
  ])('detects no respond-async in %s', (header) => {
    expect(prefersAsync(header)).toBe(false);
  });

  test('reads missing and repeated headers, and parses a hostile header in bounded time', () => {
    expect(prefersAsync(undefined)).toBe(false);
    expect(prefersAsync(['wait=1', 'respond-async'])).toBe(true);
    const before = process.threadCpuUsage();
    expect(prefersAsync('a; '.repeat(5000))).toBe(false);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(200);
  });
});
