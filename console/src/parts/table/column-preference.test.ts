import { expect, test } from 'vitest';
import { readPreference } from './column-preference.ts';

test('reads a column preference and skips its invalid parts', () => {
  expect(readPreference('{"hidden":["ip",3],"widths":{"name":120,"tags":"wide","seen":9}}')).toEqual({
    hidden: ['ip'],
    widths: { name: 120 },
  });
  expect(readPreference('{}')).toEqual({ hidden: [], widths: {} });
  for (const text of [null, 'null', '3', '{']) expect(readPreference(text)).toBeNull();
});
