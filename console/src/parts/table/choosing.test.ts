import { describe, expect, test } from 'vitest';
import { allToggled, rangeChosen, toggled } from './choosing.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const after = (chosen: ReadonlySet<string>) => [...chosen].sort().join('');

describe('choosing rows', () => {
  test('adds an unselected row, and removes a selected one', () => {
    expect(after(toggled(new Set('a'), 'c'))).toBe('ac');
    expect(after(toggled(new Set('ac'), 'c'))).toBe('a');
  });

  test('adds all rows between the anchor and this one, in both directions', () => {
    expect(after(rangeChosen(keys, new Set('b'), 'b', 'd'))).toBe('bcd');
    expect(after(rangeChosen(keys, new Set('ad'), 'd', 'b'))).toBe('abcd');
  });

  test('removes all rows in between if the anchor was removed', () => {
    expect(after(rangeChosen(keys, new Set('acde'), 'b', 'd'))).toBe('ae');
  });

  test('toggles only one row if the anchor was removed', () => {
    expect(after(rangeChosen(keys, new Set('x'), 'x', 'c'))).toBe('cx');
    expect(after(rangeChosen(keys, new Set(), null, 'c'))).toBe('c');
  });

  test('adds all shown rows, removes them again, and keeps rows that are not shown', () => {
    expect(after(allToggled(keys, new Set('bx')))).toBe('abcdex');
    expect(after(allToggled(keys, new Set('abcdex')))).toBe('x');
  });
});
