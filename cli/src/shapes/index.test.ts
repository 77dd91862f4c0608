import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { launched } from '../program/nouns.ts';
import { describeProgram } from '../program/program.ts';
import { documentOf, errorJsonSchema } from './document.ts';
import { loadShapes } from './index.ts';

const leaves = (command: Command, words: string[] = []): string[] =>
  command.commands.length === 0
    ? [words.join(' ')]
    : command.commands.flatMap((each) => leaves(each, [...words, each.name()]));

test('declares the --json output of every command and of nothing else', async () => {
  const verbs = leaves(await describeProgram()).filter((words) => !launched.has(words));
  expect(Object.keys(await loadShapes()).toSorted()).toEqual(verbs.toSorted());
});

test('documents errors and every command that prints JSON', async () => {
  const shapes = await loadShapes();
  const document = documentOf(shapes) as { properties: Record<string, unknown>; $defs: Record<string, unknown> };
  const printing = Object.keys(shapes).filter((words) => shapes[words] !== null);
  expect(Object.keys(document.properties)).toEqual(expect.arrayContaining([...printing, 'error']));
  // Scripts can also find the schemas of renamed nouns by their previous names.
  for (const [former, now] of [
    ['windows add', 'maintenance add'],
    ['enrolment-tokens list', 'enrollment-tokens list'],
  ] as const)
    expect(document.properties[former]).toEqual(document.properties[now]);
  expect(document.$defs).toHaveProperty('Agent');
  expect(errorJsonSchema()).toMatchObject({
    $defs: { CliError: { properties: { exit: { enum: [0, 1, 2, 3, 4, 5, 6] } } } },
  });
});
