import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeDisk, reportSpace } from './disk-space.ts';

const mib = 1024 * 1024;

describe('disk space', () => {
  test.each([
    ['256 MiB of a large disk', { size: 1e12, free: 256 * mib }, null, 256 * mib, false],
    ['256 MiB of a large disk', { size: 1e12, free: 256 * mib - 1 }, null, 256 * mib, true],
    ['2 % of a small disk', { size: 8 * mib, free: mib }, null, Math.floor(8 * mib * 0.02), false],
    ['the configured size', { size: 8 * mib, free: mib }, 2 * mib, 2 * mib, true],
    ['nothing if 0 is configured', { size: 8 * mib, free: 0 }, 0, 0, false],
  ])('reserves %s, and reports space as low below the reserve', (_, usage, configured, reserve, low) => {
    expect(judgeDisk(usage, configured, false)).toEqual({ ...usage, reserve, low });
  });

  test('stays low until 1.25 times the reserve is free', () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.integer({ min: 1, max: 500 }), fc.boolean(), (free, reserve, before) => {
        const { low } = judgeDisk({ size: 1000, free }, reserve, before);
        const expected = free < reserve ? true : free >= reserve * 1.25 ? false : before;
        expect(low).toBe(expected);
      }),
    );
  });
});

describe('room for reports', () => {
  const space = { size: 1000, reserve: 100 };
  test.each([
    ['all reports above the reserve', { ...space, free: 100, low: false }, 'ample'],
    ['small reports below the reserve', { ...space, free: 99, low: true }, 'low'],
    ['small reports down to a quarter of the reserve', { ...space, free: 25, low: true }, 'low'],
    ['no reports below a quarter of the reserve', { ...space, free: 24, low: true }, 'spent'],
    ['all reports when the free space is unknown', null, 'ample'],
  ] as const)('accepts %s', (_, found, expected) => {
    expect(reportSpace(found)).toBe(expected);
  });
});
