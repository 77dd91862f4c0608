import type { Command } from 'commander';
import { describeProgram, launched } from './program.ts';

/**
 * Prints the help of every verb as one JSON object, by the words that are typed: for checks that want them all and would
 * otherwise start the program for each.
 */
function* helpsOf(command: Command, words: readonly string[]): Generator<[string, string]> {
  yield [words.join(' '), command.helpInformation()];
  for (const below of command.commands)
    if (!launched.has(below.name())) yield* helpsOf(below, [...words, below.name()]);
}

process.stdout.write(JSON.stringify(Object.fromEntries(helpsOf(await describeProgram(), []))));
