import { expect, it } from 'vitest';
import { readPreference } from './column-preference.ts';

it('a preference for columns is read as far as it is one', () => {
  expect(readPreference('{"hidden":["ip",3],"widths":{"name":120,"tags":"wide","seen":9}}')).toEqual({
    hidden: ['ip'],
    widths: { name: 120 },
  });
  expect(readPreference('{}')).toEqual({ hidden: [], widths: {} });
  for (const text of [null, 'null', '3', '{']) expect(readPreference(text)).toBeNull();
});
