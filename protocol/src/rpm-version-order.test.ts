import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareRpmParts } from './rpm-version-order.ts';

// Cases from rpm's own tests.
const ordered: [string, number, string][] = [
  ['1.0', 0, '1.0'],
  ['1.0', -1, '2.0'],
  ['2.0.1', 1, '2.0'],
  ['2.0.1a', 1, '2.0.1'],
  ['5.5p1', -1, '5.5p2'],
  ['5.5p10', 1, '5.5p1'],
  ['10xyz', -1, '10.1xyz'],
  ['xyz10', -1, 'xyz10.1'],
  ['xyz.4', -1, '8'],
  ['5.5p2', -1, '5.6p1'],
  ['6.5p1', 1, '5.6p1'],
  ['6.0.rc1', 1, '6.0'],
  ['10b2', 1, '10a1'],
  ['1.0aa', 1, '1.0a'],
  ['10.0001', 0, '10.1'],
  ['10.0001', -1, '10.0039'],
  ['4.999.9', -1, '5.0'],
  ['20101122', 1, '20101121'],
  ['2_0', 0, '2.0'],
  ['a', 0, 'a+'],
  ['+', 0, '_'],
  ['1.0~rc1', -1, '1.0'],
  ['1.0~rc1', -1, '1.0~rc2'],
  ['1.0~rc1~git123', -1, '1.0~rc1'],
  ['1.0^', 1, '1.0'],
  ['1.0^git1', -1, '1.0^git2'],
  ['1.0^git1', -1, '1.01'],
  ['1.0^20160101', -1, '1.0.1'],
  ['1.0^20160101^git1', 1, '1.0^20160101'],
  ['1.0~rc1^git1', 1, '1.0~rc1'],
  ['1.0^git1~pre', -1, '1.0^git1'],
];

test.each(ordered)('orders versions as rpm does: %s %s %s', (a, order, b) => {
  expect(Math.sign(compareRpmParts(a, b))).toBe(order);
  expect(Math.sign(compareRpmParts(b, a))).toBe(order === 0 ? 0 : -order);
});

test('orders versions consistently: swapping two reverses the result, and the order is transitive', () => {
  const part = fc.string({ unit: fc.constantFrom('0', '1', '9', 'a', 'b', '.', '~', '^', '+'), maxLength: 8 });
  fc.assert(
    fc.property(part, part, part, (a, b, c) => {
      expect(compareRpmParts(a, a)).toBe(0);
      expect(Math.sign(compareRpmParts(a, b))).toBe(-Math.sign(compareRpmParts(b, a)) + 0);
      if (compareRpmParts(a, b) <= 0 && compareRpmParts(b, c) <= 0)
        expect(compareRpmParts(a, c)).toBeLessThanOrEqual(0);
    }),
  );
});
