import type { Route } from '@muster/protocol/http';
import { z } from 'zod';

/** What a verb prints with `--json`. */
export interface Shape {
  readonly schema: z.ZodType;
  /** `lines`: one JSON value a line, as they come. */
  readonly form: 'document' | 'lines';
}

/** By the words of the verb. Null: with `--json` it prints what it prints without, which is no JSON. */
export type Shapes = Readonly<Record<string, Shape | null>>;

/** One JSON document. */
export const prints = (schema: z.ZodType): Shape => ({ schema, form: 'document' });

/** One JSON value a line, for what comes over time. */
export const printsLines = (schema: z.ZodType): Shape => ({ schema, form: 'lines' });

/** The usual answer of a route, as the API gives it. */
export function answerOf(route: Route): z.ZodType {
  const [schema] = Object.values(route.answers);
  if (!schema) throw new TypeError(`${route.id} answers without a body`);
  return schema;
}

/** An object that holds exactly one list: the ids or names of what something was done to. */
export const doneTo = (word: string): Shape => prints(z.strictObject({ [word]: z.array(z.string()) }));
