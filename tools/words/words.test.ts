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

test.each([
  ['message', 'the operation was cancelled', 'cancelled'],
  ['test', 'stops while it is cancelling', 'cancelling'],
  ['message', 'psql is missing; declare its package before', 'declare its package before'],
  ['comment', 'Stores when a process has last heard from its agents.', 'when a process has last'],
  ['message', 'this Muster reads version 2', 'this Muster'],
  ['message', 'its server does not exist anymore', 'does not exist anymore'],
  ['message', 'the replica b has the terminal session', 'replica b has the terminal session'],
  ['test', 'refuses a session that ended at the other replica', 'at the other replica'],
  ['test', 'keeps the container after a killed agent', 'after a killed agent'],
  ['test', 'refuses a content with the wrong hash', 'a content'],
  ['comment', 'Numbers of events that cannot be hashed.', 'Numbers of '],
  ['comment', 'Reports whether it has ended, so that it can be removed.', 'Reports whether it has ended, so that it'],
  ['message', 'Follow a run to its end; exits with its exit code', 'Follow a run to its end; exits '],
] as const)('bans in a %s: %s', (kind, text, phrase) => {
  expect(bannedIn(text, kind)).toEqual([expect.objectContaining({ phrase })]);
});

test.each([
  ['comment', '@param cancelled reports whether the operation was canceled'],
  ['comment', 'The status is `cancelled`.'],
  ['message', 'declare the package of PostgreSQL before this resource'],
  ['comment', 'The version of this Muster release.'],
  ['comment', 'Called when no process has the terminal open.'],
  ['comment', 'The agent finds files left by a killed agent when it starts.'],
  ['comment', 'Encodes a content frame.'],
  ['message', 'Reject agents: their links are closed'],
] as const)('accepts in a %s: %s', (kind, text) => {
  expect(bannedIn(text, kind)).toEqual([]);
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

test('checks only the spelling of words, and ignores code, paths, and truncated words', () => {
  expect(wordsOf("It doesn't read `colour`, docs/colour.md, node_id, --colour, v24 or agent… names.")).toEqual([
    'It',
    "doesn't",
    'read',
    'or',
    'names',
  ]);
});
