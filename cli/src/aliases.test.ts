import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { agentVerbs, withNoun, withoutNoun, withVerb } from './aliases.ts';
import { launched } from './program/nouns.ts';
import { describeProgram } from './program/program.ts';
import { nearest } from './text/nearest.ts';

const program = await describeProgram();
const noun = (name: string) => program.commands.find((command) => command.name() === name) as Command;
const isNoun = (word: string) => program.commands.some((command) => command.name() === word);
const typed = (line: string) => line.split(' ').filter(Boolean);

test.each([
  ['agent list', 'agents list'],
  ['--url https://x agent ls', '--url https://x agents ls'],
  ['module upload x.yml', 'modules upload x.yml'],
  ['operators list', 'operator list'],
  ['terminals', 'terminal'],
  ['windows list', 'maintenance list'],
  ['enrolment-tokens list', 'enrollment-tokens list'],
  ['reconcile -l role=web', 'out-of-sync -l role=web'],
  ['plan agent', 'plan agent'],
])('reads %s as %s', (line, usual) => {
  expect(withNoun(typed(line), isNoun)).toEqual(typed(usual));
});

test.each(['agent', 'agent connect h:1', 'agent rotate-key', 'agent --data-dir /x', 'agent --help'])(
  'leaves %s to the program that runs an agent',
  (line) => {
    expect(withNoun(typed(line), isNoun)).toEqual(typed(line));
    expect(agentVerbs.has(typed(line)[1] ?? '')).toBe(false);
  },
);

test.each([
  ['agents', 'agents list'],
  ['agents --status pending', 'agents list --status pending'],
  ['agents --json list', 'agents --json list'],
  ['agents --help', 'agents --help'],
  ['agents web-1', 'agents web-1'],
  ['metrics web-1 --since 24h', 'metrics show web-1 --since 24h'],
  ['metrics shwo', 'metrics shwo'],
  ['settings', 'settings show'],
  ['settings drift', 'settings show drift'],
  ['state web-1', 'state show web-1'],
  ['selectors role=web', 'selectors match role=web'],
  ['status', 'status'],
])('completes %s to %s', (line, whole) => {
  const [name = ''] = typed(line);
  expect(withVerb(typed(line), 0, noun(name), nearest)).toEqual(typed(whole));
});

test('accepts the singular and the plural of every noun', () => {
  const names = program.commands.filter((command) => command.commands.length > 0).map((command) => command.name());
  const uncountable = ['audit', 'maintenance', 'metrics', 'out-of-sync', 'state'];
  for (const name of names.filter((each) => !launched.has(each) && !uncountable.includes(each))) {
    const other = name.endsWith('s') ? name.slice(0, -1) : `${name}s`;
    expect(withNoun([other, 'list'], isNoun), other).toEqual([name, 'list']);
  }
});

test('accepts other words for list, create, and remove with every noun that has these subcommands', () => {
  const wordsOf = (command: Command) => command.commands.flatMap((each) => [each.name(), ...each.aliases()]);
  for (const command of program.commands) {
    const words = wordsOf(command);
    expect(new Set(words).size, command.name()).toBe(words.length);
    if (words.includes('list')) expect(words, command.name()).toContain('ls');
    if (words.includes('remove')) expect(words, command.name()).toEqual(expect.arrayContaining(['rm', 'delete']));
  }
  for (const name of ['assignments', 'channels', 'enrollment-tokens', 'maintenance', 'operator', 'profile', 'secrets'])
    expect(wordsOf(noun(name)), name).toEqual(expect.arrayContaining(['create', 'add']));
});

test('shows no aliases in help', () => {
  expect(noun('agents').helpInformation()).not.toMatch(/\bls\b|\brm\b|enrol\b|\|/);
});

test('suggests only existing commands for a subcommand without its noun', () => {
  for (const words of Object.values(withoutNoun)) {
    const [name = '', verb] = words.split(' ');
    expect(
      noun(name).commands.map((command) => command.name()),
      words,
    ).toContain(verb);
  }
});
