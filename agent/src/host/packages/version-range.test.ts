import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lowerBound, matchesPattern } from './version-range.ts';

test.each([
  ['20.*', '20.1', true],
  ['20.*', '20.', true],
  ['20.*', '20', false],
  ['20.*', '5:20.1', false],
  ['*1', '1', true],
  ['1*1', '1', false],
  ['1*2*2', '1.22', true],
  ['1*22*2', '1.22', false],
  ['a*b*c', 'a.c.b.c', true],
  ['1.0', '1.0', true],
  ['1.0', '1x0', false],
])('decides whether the pattern %s matches the version %s: %s', (pattern, text, matches) => {
  expect(matchesPattern(pattern, text)).toBe(matches);
});

test('matches the same strings as the equivalent regular expression', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 8 });
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), text, (parts, tried) => {
      const expression = new RegExp(`^${parts.map((part) => part.replaceAll('.', '\\.')).join('.*')}$`);
      expect(matchesPattern(parts.join('*'), tried)).toBe(expression.test(tried));
    }),
  );
});

test('uses the text after >= as the lower bound', () => {
  expect(lowerBound('>=1.2')).toBe('1.2');
  expect(lowerBound('>= 1:1.2')).toBe('1:1.2');
  for (const other of ['1.2', '=1.2', 'latest', '>1']) expect(lowerBound(other)).toBeNull();
});
