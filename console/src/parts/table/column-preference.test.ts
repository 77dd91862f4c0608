import { expect, test } from 'vitest';
import { readPreference } from './column-preference.ts';

test('reads a column preference and skips its invalid parts', () => {
  expect(
    readPreference('{"hidden":["ip",3],"kept":["seen",null],"widths":{"name":120,"tags":"wide","seen":9}}'),
  ).toEqual({
    hidden: ['ip'],
    kept: ['seen'],
    widths: { name: 120 },
  });
  expect(readPreference('{}')).toEqual({ hidden: [], kept: [], widths: {} });
  for (const text of [null, 'null', '3', '{']) expect(readPreference(text)).toBeNull();
});
