import { z } from 'zod';
import { exits } from '../exit.ts';

/** The last line of standard error after an error, with `--json`. */
export const errorShape = z
  .strictObject({
    error: z.strictObject({
      code: z.string().describe('stable, snake_case; docs/errors.md lists those of the API'),
      status: z.number().int().nullable().describe('HTTP status; null for an error of the client'),
      message: z.string().describe('for people'),
      remedy: z.string().nullable().describe('for people: what to do'),
      errors: z.array(
        z.strictObject({
          path: z.string(),
          message: z.string(),
          line: z.number().int().optional(),
          column: z.number().int().optional(),
        }),
      ),
      planned_at: z
        .number()
        .int()
        .optional()
        .describe('when the stale plan was requested, in Unix seconds; only with the code `plan_stale`'),
    }),
    exit: z.literal(Object.values(exits)),
  })
  .meta({ id: 'CliError', title: 'Error' });
