import { z } from 'zod';

/** Building blocks for route schemas. Separate from `route.ts`, which browsers load without the schema library. */

/** Returns the schema for an optional field. Null is equivalent to an absent field. */
export const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);

export const unixSeconds = z.number().int().describe('Unix seconds');
/** A time that an operator sets. The bounds refuse times in milliseconds. */
export const unixTime = z
  .number()
  .int()
  .min(0, 'must be Unix seconds, not before 1970')
  .max(253_402_300_799, 'must be Unix seconds (not milliseconds), before the year 10000')
  .describe('Unix seconds');
export const hex = (bytes: number) =>
  z.string().regex(new RegExp(`^[0-9a-fA-F]{${bytes * 2}}$`), `must be ${bytes * 2} hexadecimal characters`);

/**
 * Returns the schema for a whole number of at least 0 in a query. Values larger than `maximum` are treated as
 * `maximum`.
 */
export const queryInteger = (maximum: number, fallback?: number) => {
  const digits = z
    .string()
    .regex(/^\d{1,64}$/, 'must be a whole number of at least 0')
    .transform((text) => Math.min(Number(text), maximum))
    .meta({
      override: {
        type: 'integer',
        pattern: undefined,
        minimum: 0,
        maximum,
        ...(fallback === undefined ? {} : { default: fallback }),
      },
    });
  return digits;
};

export const listQuery = (fallback: number, maximum: number) => ({
  limit: queryInteger(maximum, fallback)
    .optional()
    .describe(`maximum number of items; values above ${maximum} are read as ${maximum}`),
  offset: queryInteger(Number.MAX_SAFE_INTEGER).optional().describe('number of items to skip'),
});

/** Returns the schema for the query parameters of a paged list. */
export const pageQuery = (fallback: number, maximum: number) => {
  const { limit, offset } = listQuery(fallback, maximum);
  return {
    limit: limit.transform((value) => value ?? fallback),
    offset: offset.transform((value) => value ?? 0),
  };
};

export const nodeParams = z.strictObject({ node_id: z.string().describe('node id, or the name of an approved agent') });
export const nameParams = z.strictObject({ name: z.string() });

/** Strings by key, such as tags and attributes. */
export const textMap = z.record(z.string(), z.string());
