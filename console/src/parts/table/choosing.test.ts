import { describe, expect, it } from 'vitest';
import { allToggled, rangeChosen, toggled } from './choosing.ts';

const keys = ['a', 'b', 'c', 'd', 'e'];
const after = (chosen: ReadonlySet<string>) => [...chosen].sort().join('');

describe('choosing rows', () => {
  it('takes one more, or one fewer', () => {
    expect(after(toggled(new Set('a'), 'c'))).toBe('ac');
    expect(after(toggled(new Set('ac'), 'c'))).toBe('a');
  });

  it('takes all between the last one and this, whichever way', () => {
    expect(after(rangeChosen(keys, new Set('b'), 'b', 'd'))).toBe('bcd');
    expect(after(rangeChosen(keys, new Set('ad'), 'd', 'b'))).toBe('abcd');
  });

  it('frees all between, when the last one was freed', () => {
    expect(after(rangeChosen(keys, new Set('acde'), 'b', 'd'))).toBe('ae');
  });

  it('takes one only when the last is no longer there', () => {
    expect(after(rangeChosen(keys, new Set('x'), 'x', 'c'))).toBe('cx');
    expect(after(rangeChosen(keys, new Set(), null, 'c'))).toBe('c');
  });

  it('takes all that are shown, and frees them again; what is not shown stays', () => {
    expect(after(allToggled(keys, new Set('bx')))).toBe('abcdex');
    expect(after(allToggled(keys, new Set('abcdex')))).toBe('x');
  });
});
