import { expect, it } from 'vitest';
import { isSameSearch, readViews } from './saved-views.ts';

it('saved views are read as far as they are views', () => {
  expect(readViews('[{"name":"Web","search":{"q":"web","n":3}},{"name":4,"search":{}},{"name":"x"},null]')).toEqual([
    { name: 'Web', search: { q: 'web' } },
  ]);
  for (const text of [null, '{}', '[', '3']) expect(readViews(text)).toEqual([]);
});

it('a view is the one that is shown when it says the same, in whatever order', () => {
  expect(isSameSearch({ q: 'a', status: 'lost' }, { status: 'lost', q: 'a' })).toBe(true);
  expect(isSameSearch({ q: 'a' }, { q: 'a', status: 'lost' })).toBe(false);
});
