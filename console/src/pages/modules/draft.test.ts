import { describe, expect, test } from 'vitest';
import { followed, keptMine, type Stored, standing, takenStored } from './draft.ts';

const stored = (revision: number, content: string): Stored => ({
  ...{ name: 'web', revision, content, uploaded_at: 1, uploaded_by: 'ab' },
});
const one = stored(1, 'name: web\n');
const two = stored(2, 'name: web\n# two\n');

describe('how a draft stands', () => {
  test.each([
    ['as it is stored', { base: one, text: one.content }, one, 'unchanged'],
    ['something was typed', { base: one, text: 'x' }, one, 'edited'],
    ['what is stored is not known', { base: one, text: 'x' }, null, 'edited'],
    ['an answer that is older than what it began from', { base: two, text: 'x' }, one, 'edited'],
    ['somebody else stored, and nothing was typed', { base: one, text: one.content }, two, 'behind'],
    ['somebody else stored the very same', { base: one, text: two.content }, two, 'behind'],
    ['somebody else stored something else', { base: one, text: 'x' }, two, 'conflict'],
    ['a new module', { base: null, text: 'x' }, null, 'edited'],
    ['a new module of which nothing is there', { base: null, text: ' \n' }, null, 'unchanged'],
    ['a new module that somebody else has made meanwhile', { base: null, text: 'x' }, one, 'conflict'],
  ])('%s', (_, draft, latest, stands) => expect(standing(draft, latest)).toBe(stands));
});

describe('what is done about it', () => {
  test('what loses nothing is taken without asking', () => {
    expect(followed({ base: one, text: one.content }, two)).toEqual({ base: two, text: two.content });
    expect(followed({ base: one, text: two.content }, two)).toEqual({ base: two, text: two.content });
  });
  test('what was typed is never taken away', () => {
    const typed = { base: one, text: 'mine' };
    expect(followed(typed, two)).toBe(typed);
    expect(followed(typed, null)).toBe(typed);
  });
  test('a conflict ends with mine as a change of theirs, or with theirs', () => {
    const mine = keptMine({ base: one, text: 'mine' }, two);
    expect(mine).toEqual({ base: two, text: 'mine' });
    expect(standing(mine, two)).toBe('edited');
    expect(standing(takenStored(two), two)).toBe('unchanged');
  });
});
