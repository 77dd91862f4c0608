import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { judgeDisk, reportRoom } from './disk-space.ts';

const mib = 1024 * 1024;

describe('disk space', () => {
  test.each([
    ['a large disk keeps 256 MiB', { size: 1e12, free: 256 * mib }, null, 256 * mib, false],
    ['and is low below', { size: 1e12, free: 256 * mib - 1 }, null, 256 * mib, true],
    ['a small one keeps a fiftieth', { size: 8 * mib, free: mib }, null, Math.floor(8 * mib * 0.02), false],
    ['the configuration wins', { size: 8 * mib, free: mib }, 2 * mib, 2 * mib, true],
    ['0 keeps nothing, also on a full disk', { size: 8 * mib, free: 0 }, 0, 0, false],
  ])('%s', (_, room, wanted, reserve, low) => {
    expect(judgeDisk(room, wanted, false)).toEqual({ ...room, reserve, low });
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
    ['as usual above the reserve', { ...space, free: 100, low: false }, 'ample'],
    ['what takes little room below it', { ...space, free: 99, low: true }, 'low'],
    ['the same down to a quarter of it', { ...space, free: 25, low: true }, 'low'],
    ['nothing below that', { ...space, free: 24, low: true }, 'spent'],
    ['as usual where the disk cannot be asked', null, 'ample'],
  ] as const)('%s', (_, found, room) => {
    expect(reportRoom(found)).toBe(room);
  });
});
