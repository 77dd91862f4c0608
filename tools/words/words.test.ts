import { expect, test } from 'vitest';
import { proseOf, wordsOf } from './pages.ts';
import { bannedIn } from './phrases.ts';

const phrases = (text: string) => bannedIn(text, 'comment').map(({ phrase }) => phrase);

test.each([
  ['What is not tried is skipped.', 'What is'],
  ['Whose number may have been reused.', 'Whose'],
  ['Of those that failed, none is tried again.', 'Of those'],
  ['So many bytes are sent in one frame.', 'So many'],
  ['The link begins anew.', 'anew'],
  ['Its number may be reused by now.', 'by now'],
  ['A line that is none is dropped.', 'is none'],
  ['The agent carries the operation out.', null],
  ['Resources are carried out in order.', 'carried out'],
  ['Nobody is told.', 'Nobody is'],
  ['The owner is told of it.', 'is told'],
  ['It goes away for good.', 'for good'],
])('finds in "%s" the phrase %s', (text, phrase) => {
  if (phrase === null) expect(phrases(text)).toEqual([]);
  else expect(phrases(text)).toContain(phrase);
});

test.each([
  'What is a module?',
  'Returns null when there is none.',
  'None of the agents matches.',
  'Explains which field is wrong.',
  'Run the command again.',
])('accepts "%s"', (text) => {
  expect(phrases(text)).toEqual([]);
});

test('bans some phrases in one kind of text only', () => {
  expect(bannedIn('is refused when used', 'test')).toEqual([
    { phrase: 'is', instead: expect.stringContaining('expected behavior') },
  ]);
  expect(bannedIn('is refused when used', 'message')).toEqual([]);
  expect(bannedIn('prints "a"', 'test')).toEqual([]);
  expect(bannedIn('prints "a" and "', 'test')).toHaveLength(1);
  expect(bannedIn('It was never applied.', 'comment')).toEqual([
    { phrase: 'It ', instead: expect.stringContaining('name the subject') },
  ]);
});

test('reads the prose on a page, without code and link targets', () => {
  const page = '# Title\n\nSee [the page](other/path.md).\n\n```sh\nmuster colour\n```\n\nThe end <br>.\n';
  expect(proseOf('docs/a.md', page)).toEqual([
    { kind: 'page', file: 'docs/a.md', line: 1, text: '# Title' },
    { kind: 'page', file: 'docs/a.md', line: 3, text: 'See [the page].' },
    { kind: 'page', file: 'docs/a.md', line: 9, text: 'The end .' },
  ]);
});

test('checks the spelling of words only, not of code, paths, or cut words', () => {
  expect(wordsOf("It doesn't read `colour`, docs/colour.md, node_id, --colour, v24 or agent… names.")).toEqual([
    'It',
    "doesn't",
    'read',
    'or',
    'names',
  ]);
});
