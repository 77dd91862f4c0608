import type { Route } from '@muster/protocol/http';
import { z } from 'zod';

/** The output of a command with `--json`. */
export interface Shape {
  readonly schema: z.ZodType;
  /** `lines` means that each line is a JSON value, printed as soon as it is available. */
  readonly form: 'document' | 'lines';
}

/** Output shapes by command; null if the command prints no JSON. */
export type Shapes = Readonly<Record<string, Shape | null>>;

/** Returns the shape of output that is a single JSON document. */
export const prints = (schema: z.ZodType): Shape => ({ schema, form: 'document' });

/** Returns the shape of output with a JSON value on each line, for output over time. */
export const printsLines = (schema: z.ZodType): Shape => ({ schema, form: 'lines' });

/** Returns the schema of a route's success response. */
export function answerOf(route: Route): z.ZodType {
  const [schema] = Object.values(route.answers);
  if (!schema) throw new TypeError(`${route.id} returns no body`);
  return schema;
}

/** Returns the shape of an object with one list: the IDs or names of the changed items. */
export const doneTo = (word: string): Shape => prints(z.strictObject({ [word]: z.array(z.string()) }));
