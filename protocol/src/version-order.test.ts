import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareVersions } from './version-order.ts';

test('compares versions as dpkg does', () => {
  const ordered = ['1.0~~', '1.0~rc1', '1.0', '1.0-1', '1.0-1+b1', '1.0a', '1.0+git', '1.2', '1.10', '2', '1:0.1'];
  for (let i = 0; i < ordered.length; i++)
    for (let j = 0; j < ordered.length; j++)
      expect(
        Math.sign(compareVersions(ordered[i] as string, ordered[j] as string)),
        `${ordered[i]} ${ordered[j]}`,
      ).toBe(Math.sign(i - j));
  expect(compareVersions('1.01', '1.1')).toBe(0);
  fc.assert(
    fc.property(
      fc.stringMatching(/^[0-9][0-9a-z.+~-]{0,8}$/),
      fc.stringMatching(/^[0-9][0-9a-z.+~-]{0,8}$/),
      (a, b) => {
        expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0);
        expect(compareVersions(a, a)).toBe(0);
      },
    ),
  );
});
