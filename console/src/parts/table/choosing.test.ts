import { describe, expect, test } from 'vitest';
import { allToggled, rangeChosen, toggled } from './choosing.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const after = (chosen: ReadonlySet<string>) => [...chosen].sort().join('');

describe('choosing rows', () => {
  test('selects an unselected row, and deselects a selected one', () => {
    expect(after(toggled(new Set('a'), 'c'))).toBe('ac');
    expect(after(toggled(new Set('ac'), 'c'))).toBe('a');
  });

  test('selects all rows between the anchor and the clicked row, in both directions', () => {
    expect(after(rangeChosen(keys, new Set('b'), 'b', 'd'))).toBe('bcd');
    expect(after(rangeChosen(keys, new Set('ad'), 'd', 'b'))).toBe('abcd');
  });

  test('deselects all rows between the anchor and the clicked row if the anchor was deselected', () => {
    expect(after(rangeChosen(keys, new Set('acde'), 'b', 'd'))).toBe('ae');
  });

  test('toggles only the clicked row if the anchor is not shown', () => {
    expect(after(rangeChosen(keys, new Set('x'), 'x', 'c'))).toBe('cx');
    expect(after(rangeChosen(keys, new Set(), null, 'c'))).toBe('c');
  });

  test('selects and deselects all shown rows, and keeps the state of hidden rows', () => {
    expect(after(allToggled(keys, new Set('bx')))).toBe('abcdex');
    expect(after(allToggled(keys, new Set('abcdex')))).toBe('x');
  });
});
