import type { Command } from 'commander';
import { withNoun, withVerb } from '../src/aliases.ts';
import { describeProgram } from '../src/program/program.ts';
import { errorShape } from '../src/shapes/error.ts';
import { loadShapes } from '../src/shapes/index.ts';
import type { Shape } from '../src/shapes/shape.ts';
import { nearest } from '../src/text/nearest.ts';

let known: Promise<Command> | undefined;

/**
 * Returns the words that name the subcommand in a command line; null if there are none.
 * @param args the words after `muster`
 */
async function verbOf(typed: readonly string[]): Promise<string | null> {
  known ??= describeProgram();
  const program = await known;
  let command = program;
  const { options } = command;
  const words: string[] = [];
  let args = withNoun(typed, (word) => program.commands.some((each) => each.name() === word));
  for (let at = 0; at < args.length && command.commands.length > 0; at++) {
    const word = args[at] as string;
    if (word.startsWith('-')) {
      if (options.some((option) => option.long === word && option.required)) at++;
      continue;
    }
    const below = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (!below) return null;
    words.push(below.name());
    args = withVerb(args, at, below, nearest);
    command = below;
  }
  return command.commands.length > 0 || words.length === 0 ? null : words.join(' ');
}

/**
 * Validates `--json` output against the shape that the command declares. Called for every test that runs a command.
 * @throws Error that names the command and the error
 */
export async function checkShape(
  args: readonly string[],
  { exit, stdout, stderr }: { exit: number | null; stdout: string; stderr: string },
): Promise<void> {
  if (!args.includes('--json') || args.includes('--help') || args.includes('-h')) return;
  const verb = await verbOf(args);
  if (verb === null) return;
  const shapes = await loadShapes();
  const shape = shapes[verb];
  if (shape === undefined) throw new Error(`muster ${verb} declares no shape for its --json output`);
  if (shape !== null) checkData(verb, shape, stdout, exit);
  if (exit === 2 || exit === 4 || exit === 5 || (exit === 1 && stdout === '')) checkError(verb, stderr);
}

function checkData(verb: string, { schema, form }: Shape, stdout: string, exit: number | null): void {
  if (stdout === '') {
    if (exit === 0 && form === 'document') throw new Error(`muster ${verb} --json printed nothing`);
    return;
  }
  if (!stdout.endsWith('\n')) throw new Error(`muster ${verb} --json: the last line does not end with a newline`);
  for (const text of form === 'lines' ? stdout.slice(0, -1).split('\n') : [stdout]) {
    const read = schema.safeParse(parse(verb, text));
    if (!read.success)
      throw new Error(`muster ${verb} --json does not match its shape: ${read.error.message}\n${text}`);
  }
}

function checkError(verb: string, stderr: string): void {
  const last = stderr.trimEnd().split('\n').at(-1) as string;
  const read = errorShape.safeParse(parse(verb, last));
  if (!read.success)
    throw new Error(`the error of muster ${verb} --json does not match its shape: ${read.error.message}\n${last}`);
}

function parse(verb: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`muster ${verb} --json printed text that is not JSON: ${JSON.stringify(text.slice(0, 200))}`);
  }
}
