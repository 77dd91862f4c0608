import type { Command, Option } from 'commander';
import { exitMeanings, exits } from '../exit.ts';
import { documentOf, jsonSchemaOf } from '../shapes/document.ts';
import { loadShapes } from '../shapes/index.ts';
import { launched } from './nouns.ts';
import { describeProgram } from './program.ts';

/*
 * Prints all commands and their results as one JSON object, so that checks and page generators need to start the
 * program only once.
 */

const optionOf = ({ flags, description, defaultValue, negate }: Option) => ({
  flags,
  description,
  default: negate || typeof defaultValue === 'boolean' ? null : (defaultValue ?? null),
});

/** Returns the help text below the options, which consists of prose and examples. */
function afterHelp(command: Command): { prose: string; examples: string[] } {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  const [prose = '', examples = ''] = help.slice(command.helpInformation().length).split(/^Examples?:$/m);
  return {
    prose: prose.trim(),
    examples: [...examples.matchAll(/^ {2}\$ (.*)$/gm)].map(([, line]) => line as string),
  };
}

const shapes = await loadShapes();

function describe(command: Command, words: readonly string[]): unknown {
  const name = words.join(' ');
  const shape = shapes[name];
  return {
    words: name,
    description: command.description(),
    group: command.helpGroup().replace(/:$/, ''),
    /** Whether a separate program prints the command's help. */
    launched: launched.has(name),
    usage: command.usage(),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      description: argument.description,
    })),
    options: command.options.map(optionOf),
    ...afterHelp(command),
    json: shape ? { form: shape.form, schema: jsonSchemaOf(shape) } : null,
    verbs: command.commands.map((below) => describe(below, [...words, below.name()])),
  };
}

function* helpsOf(command: Command, words: readonly string[]): Generator<[string, string]> {
  yield [words.join(' '), command.helpInformation()];
  for (const below of command.commands)
    if (!launched.has(below.name())) yield* helpsOf(below, [...words, below.name()]);
}

const program = await describeProgram();
process.stdout.write(
  JSON.stringify({
    /** Help output of each command, by the words of the command. */
    helps: Object.fromEntries(helpsOf(program, [])),
    program: describe(program, []),
    exits: Object.entries(exits).map(([word, code]) => ({ code, meaning: exitMeanings[word as keyof typeof exits] })),
    /** The content of docs/cli-output.schema.json. */
    document: documentOf(shapes),
  }),
);
