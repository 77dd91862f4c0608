import type { Route } from '@muster/protocol/http';
import { z } from 'zod';

/** The output of a verb with `--json`. */
export interface Shape {
  readonly schema: z.ZodType;
  /** `lines`: one JSON value a line, as it arrives. */
  readonly form: 'document' | 'lines';
}

/** Maps the words of a verb to the shape of its output; null: the verb prints no JSON. */
export type Shapes = Readonly<Record<string, Shape | null>>;

/** The output is a single JSON document. */
export const prints = (schema: z.ZodType): Shape => ({ schema, form: 'document' });

/** The output has a JSON value on each line, for output over time. */
export const printsLines = (schema: z.ZodType): Shape => ({ schema, form: 'lines' });

/** The success answer of a route. */
export function answerOf(route: Route): z.ZodType {
  const [schema] = Object.values(route.answers);
  if (!schema) throw new TypeError(`${route.id} answers without a body`);
  return schema;
}

/** An object with one list: the ids or names of changed items. */
export const doneTo = (word: string): Shape => prints(z.strictObject({ [word]: z.array(z.string()) }));
