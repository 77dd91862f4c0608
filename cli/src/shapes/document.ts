import { z } from 'zod';
import { formerNouns } from '../aliases.ts';
import { errorShape } from './error.ts';
import type { Shape, Shapes } from './shape.ts';

const draft = { target: 'draft-2020-12', io: 'output', unrepresentable: 'any' } as const;

/** Returns the JSON Schema of a command's output, or of each line of it. */
export const jsonSchemaOf = ({ schema }: Shape): Record<string, unknown> =>
  z.toJSONSchema(schema, draft) as Record<string, unknown>;

/** Returns the JSON Schema of errors on standard error. */
export const errorJsonSchema = (): Record<string, unknown> =>
  z.toJSONSchema(errorShape, draft) as Record<string, unknown>;

/** Returns the names of a command: its current name, and those from earlier releases. */
function namesOf(words: string): string[] {
  const [noun, ...rest] = words.split(' ');
  const former = Object.entries(formerNouns).flatMap(([name, now]) => (now === noun ? [name] : []));
  return [words, ...former.map((name) => [name, ...rest].join(' '))];
}

/** Returns a JSON Schema for all commands, with a property for each command and one for `error`. */
export function documentOf(shapes: Shapes): Record<string, unknown> {
  const entries = Object.entries(shapes)
    .flatMap(([words, shape]) => namesOf(words).map((name) => [name, shape] as const))
    .filter((entry): entry is readonly [string, Shape] => entry[1] !== null)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const schema = z
    .strictObject({
      ...Object.fromEntries(
        entries.map(([words, { schema, form }]) => [
          words,
          (form === 'lines' ? z.union([schema]).describe('one per line') : schema).optional(),
        ]),
      ),
      error: errorShape.optional(),
    })
    .describe(
      'Output of each verb of `muster` with --json, by its words, and, as `error`, the last line of standard error after a failure.',
    );
  return z.toJSONSchema(schema, draft) as Record<string, unknown>;
}
