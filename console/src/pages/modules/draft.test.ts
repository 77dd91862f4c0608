import { expect, test } from 'vitest';
import { draftOf, draftStatus, fastForward, rebase, type Stored } from './draft.ts';

const stored = (revision: number, content: string): Stored => ({
  ...{ name: 'web', revision, content, uploaded_at: 1, uploaded_by: 'ab', requires: [], required_by: [] },
});
const one = stored(1, 'name: web\n');
const two = stored(2, 'name: web\n# two\n');

test.each([
  ['nothing was typed', { base: one, text: one.content }, one, 'unchanged'],
  ['a change was typed', { base: one, text: 'x' }, one, 'edited'],
  ['only files were restored', { base: two, text: two.content, filesOf: 1 }, two, 'edited'],
  ['files were restored, and a newer revision exists', { base: one, text: two.content, filesOf: 1 }, two, 'conflict'],
  ['the stored revision is unknown', { base: one, text: 'x' }, null, 'edited'],
  ['the stored revision is older than the base', { base: two, text: 'x' }, one, 'edited'],
  ['a newer revision exists, and nothing was typed', { base: one, text: one.content }, two, 'behind'],
  ['a newer revision has the same text', { base: one, text: two.content }, two, 'behind'],
  ['a newer revision has another text', { base: one, text: 'x' }, two, 'conflict'],
])("returns a draft's status: %s", (_, draft, latest, status) => expect(draftStatus(draft, latest)).toBe(status));

test('fast-forwards to a newer revision if no typed text is lost', () => {
  expect(fastForward({ base: one, text: one.content }, two)).toEqual({ base: two, text: two.content });
  expect(fastForward({ base: one, text: two.content }, two)).toEqual({ base: two, text: two.content });
});
test('does not fast-forward a draft with typed text', () => {
  const typed = { base: one, text: 'mine' };
  expect(fastForward(typed, two)).toBe(typed);
  expect(fastForward(typed, null)).toBe(typed);
});
test('resolves a conflict by rebasing the draft or by taking the stored text', () => {
  const mine = rebase({ base: one, text: 'mine' }, two);
  expect(mine).toEqual({ base: two, text: 'mine' });
  expect(draftStatus(mine, two)).toBe('edited');
  expect(draftStatus(draftOf(two), two)).toBe('unchanged');
});
