import { expect, test } from 'vitest';
import { isSameSearch, readViews } from './saved-views.ts';

test('reads valid views and skips invalid ones', () => {
  expect(readViews('[{"name":"Web","search":{"q":"web","n":3}},{"name":4,"search":{}},{"name":"x"},null]')).toEqual([
    { name: 'Web', search: { q: 'web' } },
  ]);
  for (const text of [null, '{}', '[', '3']) expect(readViews(text)).toEqual([]);
});

test('compares searches regardless of parameter order', () => {
  expect(isSameSearch({ q: 'a', status: 'lost' }, { status: 'lost', q: 'a' })).toBe(true);
  expect(isSameSearch({ q: 'a' }, { q: 'a', status: 'lost' })).toBe(false);
});
