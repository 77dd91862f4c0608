import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countProcesses, cpuUsage, parseCpuTimes, parseLoad, parseMemory, parseUptime } from './readings.ts';

const cpu = (line: string) => parseCpuTimes(`${line}\ncpu0 1 1 1 1\nintr 5 5\nctxt 7\n`);
const used = (before: string, after: string) => {
  const [from, to] = [cpu(before), cpu(after)];
  return from === null || to === null ? null : cpuUsage(from, to);
};

/** Generates malformed variants of the kernel's format. */
const hostile = (text: string) =>
  fc.oneof(
    fc.string(),
    fc
      .tuple(fc.nat(text.length), fc.nat(40), fc.string({ maxLength: 30 }))
      .map(([at, length, inserted]) => [text.slice(0, at), inserted, text.slice(at + length)].join('')),
    fc.stringMatching(/^[\d .:a-zA-Z\n-]{0,80}$/).map((tail) => `${text.slice(0, 30)}${tail}`),
  );

describe('the CPU usage', () => {
  test('computes CPU usage as the share of time that was neither idle nor waiting for a disk', () => {
    expect(used('cpu  100 0 100 700 100 0 0 0 0 0', 'cpu  150 10 120 790 120 5 5 0 0 0')).toBe(45);
    expect(used('cpu  0 0 0 0', 'cpu  1 0 0 2')).toBe(33.33);
  });

  test('counts guest time once, and counts steal time as busy', () => {
    // A guest used 50 ticks of `user`, which appear again in the ninth field.
    expect(used('cpu  0 0 0 0 0 0 0 0 0 0', 'cpu  50 0 0 50 0 0 0 0 50 50')).toBe(50);
    expect(used('cpu  0 0 0 0 0 0 0 0 0 0', 'cpu  10 0 0 50 0 0 0 40 0 0')).toBe(50);
  });

  test('returns null if no ticks have elapsed, and treats a decreasing counter as unchanged', () => {
    expect(used('cpu  5 5 5 5 5', 'cpu  5 5 5 5 5')).toBeNull();
    expect(used('cpu  5 5 5 500 900 0 0 0', 'cpu  55 5 5 550 100 0 0 0')).toBe(50);
    expect(used('cpu  900 5 5 500 0 0 0 0', 'cpu  100 5 55 550 0 0 0 0')).toBe(50);
    expect(used('cpu  9 9 9 9 9', 'cpu  1 1 1 1 1')).toBeNull();
  });

  test('returns null or a percentage from 0 to 100 for any text', () => {
    for (const line of [
      '',
      'cpu',
      'cpu  1 2 3',
      'cpu  1 2 x 4',
      'cpu  1 2 3 -4',
      'cpu0 1 2 3 4',
      'cpu  1 2 3 99999999999999999',
    ])
      expect(parseCpuTimes(line)).toBeNull();
    const text = 'cpu  2686663 45043 809053 1097241 31645 0 17776 6158 0 0\ncpu0 1 1 1 1\n';
    fc.assert(
      fc.property(hostile(text), hostile(text), (before, after) => {
        const [from, to] = [parseCpuTimes(before), parseCpuTimes(after)];
        const usage = from === null || to === null ? null : cpuUsage(from, to);
        expect(usage === null || (usage >= 0 && usage <= 100)).toBe(true);
      }),
    );
  });
});

describe('memory', () => {
  const text =
    'MemTotal:       24684096 kB\nMemFree:        17735540 kB\nMemAvailable:   23400600 kB\nSwapCached:  0 kB\nSwapTotal:  2048 kB\nSwapFree:  1024 kB\n';

  test('computes used memory as the total minus the available memory', () => {
    expect(parseMemory(text)).toEqual({ total: 24684096 * 1024, used: 1283496 * 1024, swapUsed: 1024 * 1024 });
  });

  test('returns null only for memory values that are missing or impossible', () => {
    const without = (name: string) => parseMemory(text.replace(new RegExp(`^${name}:.*\n`, 'm'), ''));
    expect(without('MemAvailable')).toEqual({ total: 24684096 * 1024, used: null, swapUsed: 1024 * 1024 });
    expect(without('MemTotal')).toMatchObject({ total: null, used: null, swapUsed: 1024 * 1024 });
    expect(without('SwapFree')).toMatchObject({ total: 24684096 * 1024, swapUsed: null });
    expect(parseMemory(text.replace('23400600', '24684097')).used).toBeNull();
    expect(parseMemory('MemTotal: 9007199254740991 kB\n').total).toBeNull();
    expect(parseMemory('')).toEqual({ total: null, used: null, swapUsed: null });
  });

  test('reads memory values from any text, never negative or above the total', () => {
    fc.assert(
      fc.property(hostile(text), (given) => {
        const { total, used: inUse, swapUsed } = parseMemory(given);
        for (const value of [total, inUse, swapUsed])
          expect(value === null || (Number.isSafeInteger(value) && value >= 0)).toBe(true);
        if (inUse !== null) expect(inUse).toBeLessThanOrEqual(total!);
      }),
    );
  });
});

describe('load, uptime, and processes', () => {
  test('reads load, uptime, and number of processes', () => {
    expect(parseLoad('10.30 5.45 3.39 1/95 1860\n')).toBe(10.3);
    expect(parseUptime('23570.94 10972.41\n')).toBe(23570);
    expect(countProcesses(['1', '17', '4711', 'self', 'meminfo', 'net', 'acpi'])).toBe(3);
  });

  test('returns null for missing, malformed, or hidden values', () => {
    for (const text of ['', 'x', '-1.0 1 1', '1.2.3 1', '9999999999 1 1', 'Infinity 1', '1e5 1', 'NaN 1'])
      expect(parseLoad(text)).toBeNull();
    for (const text of ['', 'up 5', '-5.0 1', '99999999999999999999 1', '12']) expect(parseUptime(text)).toBeNull();
    expect(countProcesses([])).toBeNull();
    // Process 1 belongs to another user and is hidden.
    expect(countProcesses(['4711', '17', 'self'])).toBeNull();
  });

  test('accepts any text for load, uptime, and processes', () => {
    fc.assert(
      fc.property(hostile('10.30 5.45 3.39 1/95 1860\n'), (text) => {
        for (const value of [parseLoad(text), parseUptime(text)])
          expect(value === null || (Number.isFinite(value) && value >= 0)).toBe(true);
      }),
    );
  });
});
