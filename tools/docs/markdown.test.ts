import { describe, expect, test } from 'vitest';
import { anchorsOf, blocksOf, commandsOf, linksOf } from './markdown.ts';

describe('links of a page', () => {
  test('finds inline links, images, and definitions, with their lines', () => {
    const page = 'See [a](docs/a.md) and ![b](b.png "title").\n\n[c]: ./c.md#part\nplain text';
    expect(linksOf(page)).toEqual([
      { target: 'docs/a.md', line: 1 },
      { target: 'b.png', line: 1 },
      { target: './c.md#part', line: 3 },
    ]);
  });

  test('ignores links in code', () => {
    expect(linksOf('`[a](b.md)`\n```\n[c](d.md)\n```\n~~~\n```\n[e](f.md)\n~~~\n[g](h.md)')).toEqual([
      { target: 'h.md', line: 9 },
    ]);
  });
});

test('derives the same heading anchors as Markdown renderers', () => {
  expect([...anchorsOf('# One & two\n## `npm start` again\n```\n# no\n```\n# One & two')]).toEqual([
    'one--two',
    'npm-start-again',
    'one--two-1',
  ]);
});

describe('commands of a page', () => {
  test('finds commands in blocks and backticks, and omits prompts, comments, and pipes', () => {
    const page = [
      'Run `npm start` or `other thing`.',
      '```sh',
      '$ npx muster agents list --json | jq .  # all of them',
      'cd x && npm run check',
      "npx muster tag web-1 'a b'   > out",
      'echo npm',
      'ada@control:~$ sudo npx muster status',
      '```',
    ].join('\n');
    expect(commandsOf(page, ['npm', 'npx'])).toEqual([
      { words: ['npm', 'start'], line: 1 },
      { words: ['npx', 'muster', 'agents', 'list', '--json'], line: 3 },
      { words: ['npm', 'run', 'check'], line: 4 },
      { words: ['npx', 'muster', 'tag', 'web-1', "'a b'"], line: 5 },
      { words: ['npx', 'muster', 'status'], line: 7 },
    ]);
  });
});

test('finds whole code blocks with a language', () => {
  expect(blocksOf('a\n```yaml\nname: x\n\nb: 1\n```\n```\nplain\n```\n~~~sh\n```\n~~~\n')).toEqual([
    { language: 'yaml', source: 'name: x\n\nb: 1\n', line: 2 },
    { language: 'sh', source: '```\n', line: 10 },
  ]);
});
