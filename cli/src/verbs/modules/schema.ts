import { withNoun } from '../../aliases.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { CliError, exits } from '../../exit.ts';
import { documentOf, errorJsonSchema, jsonSchemaOf } from '../../shapes/document.ts';
import { loadShapes } from '../../shapes/index.ts';
import { nearest } from '../../text/nearest.ts';

export const register: Register = (command, act) => {
  command
    .argument('[verb...]', 'Words of a verb, or error for the schema of errors; default: all verbs')
    .addHelpText(
      'after',
      '\nFor a verb that streams JSON, one value per line, the schema describes one line.\n\nExamples:\n  $ muster schema agents list\n  $ muster schema error\n  $ muster schema > muster-output.schema.json',
    )
    .action(act(schema));
};

async function schema({ out }: Context, words: string[]): Promise<undefined> {
  const shapes = await loadShapes();
  const known = Object.keys(shapes);
  const verb = withNoun(words, (noun) => known.some((each) => each.split(' ')[0] === noun)).join(' ');
  if (verb === 'error') out.data(errorJsonSchema());
  else if (verb === '') out.data(documentOf(shapes));
  else {
    const shape = shapes[verb];
    if (!shape) throw unknown(verb, known, verb in shapes);
    out.data(jsonSchemaOf(shape));
  }
}

function unknown(verb: string, known: readonly string[], isKnown: boolean): CliError {
  if (isKnown) return new CliError(exits.failed, 'no_schema', `muster ${verb} prints no JSON`);
  const near = nearest(verb, known);
  const below = known.filter((words) => words.startsWith(`${verb} `)).map((words) => words.slice(verb.length + 1));
  return new CliError(
    exits.usage,
    'usage',
    `there is no verb ${JSON.stringify(verb)}`,
    below.length > 0
      ? `It has these verbs: ${below.join(', ')}`
      : near === null
        ? 'List the verbs: muster --help'
        : `Did you mean ${near}?`,
  );
}
