import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { exitMeanings, exits } from './exit.ts';
import { wrapProse } from './program/help-text.ts';
import { launched } from './program/nouns.ts';
import { describeProgram } from './program/program.ts';

const page = await readFile(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const program = await describeProgram();

const leaves = (command: Command, words: string[] = []): { words: string; command: Command }[] =>
  command.commands.length === 0
    ? [{ words: words.join(' '), command }]
    : command.commands.flatMap((each) => leaves(each, [...words, each.name()]));
const verbs = leaves(program);

test('finds the program’s exit codes in docs/cli.md', () => {
  const listed = [...page.matchAll(/^\| (\d) \| (.*) \|$/gm)].map(([, code, meaning]) => [Number(code), meaning]);
  expect(listed).toEqual(Object.entries(exits).map(([name, code]) => [code, exitMeanings[name as keyof typeof exits]]));
});

test('finds the variable of every global flag in docs/cli.md', () => {
  const flags = program.options.filter(({ long }) => long !== '--version');
  const listed = [...page.matchAll(/^\| `(--[a-z-]+)` \| `(MUSTER_[A-Z_]+)`/gm)].map(([, ...pair]) => pair);
  const documented = flags.map(({ long, description }) => [long, /\b(MUSTER_[A-Z_]+)\b/.exec(description)?.[1]]);
  expect(documented.toSorted()).toEqual(listed.toSorted());
});

test.each(verbs.filter(({ words }) => words !== 'orchestrator' && words !== 'agent'))(
  'finds an example in the help of muster $words',
  ({ words, command }) => {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) });
    command.outputHelp();
    expect(command.description()).not.toBe('');
    expect(help).toMatch(new RegExp(`^Examples?:\\n  \\$ muster ${words}`, 'm'));
  },
);

const everyCommand = (command: Command, words: string): [string, Command][] => [
  [words, command],
  ...command.commands.flatMap((each) => everyCommand(each, `${words} ${each.name()}`)),
];

test.each(everyCommand(await describeProgram(80), 'muster'))(
  'finds each option and subcommand of %s described in one line of 80 columns that begins with a capital letter',
  (_, command) => {
    const lists = command
      .helpInformation()
      .split(/\n\n/)
      .filter((section) => /^\S.*:\n/.test(section) && !/^(Usage|Arguments):/.test(section));
    for (const entry of lists.flatMap((section) => section.split('\n').slice(1)))
      if (entry !== '') expect(entry).toMatch(/^ {2}\S.* {2,}\p{Lu}/u);
  },
);

test('wraps prose, and keeps lists and examples unchanged', () => {
  const text = 'Usage: x\n\nOne two three\nfour five.\n\nExample:\n  $ muster a very long example line\n';
  expect(wrapProse(text, 12)).toBe(
    'Usage: x\n\nOne two\nthree four\nfive.\n\nExample:\n  $ muster a very long example line\n',
  );
});

/**
 * Returns the words of each `muster` command in an example line, split as a shell splits them, without pipes and
 * redirections.
 */
function wordsIn(line: string): string[][] {
  return line
    .replaceAll(/\$\(muster [^)]*\)/g, 'x')
    .split(/\s\|\s|<\(|\)$/)
    .map((part) => part.replace(/\s+>\s.*$/, '').trim())
    .filter((part) => part.startsWith('muster '))
    .map((part) =>
      [...part.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)]
        .slice(1)
        .map(([, double, single, unquoted]) => double ?? single ?? unquoted ?? ''),
    );
}

const examples = verbs.flatMap(({ command }) => {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return [...help.matchAll(/^ {2}\$ (.*)$/gm)].flatMap(([, line = '']) => wordsIn(line));
});

test.each(examples.filter(([noun = '']) => !launched.has(noun)))(
  'accepts the example muster %s … as a valid command line',
  async (...words) => {
    await (await describeProgram()).parseAsync(words, { from: 'user' });
  },
);
