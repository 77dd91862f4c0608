import { z } from 'zod';
import { isMapping } from '../mapping.ts';

/**
 * Schemas for lists and maps in messages from agents. They check the size first, and stop at the first error. Zod's own
 * schemas would check every element and describe every error, which takes tens of milliseconds for a hostile frame.
 */

type Context = z.RefinementCtx;

/**
 * Reports an error.
 * @returns the result of a transform for invalid input
 */
function refuse(context: Context, message: string, path: PropertyKey[] = []): never {
  context.addIssue({ code: 'custom', message, path });
  return z.NEVER;
}

export const boundedList = <T extends z.ZodType>(item: T, { min, max }: { min: number; max: number }) =>
  z.unknown().transform((value, context): z.output<T>[] => {
    if (!Array.isArray(value)) return refuse(context, 'must be a list');
    if (value.length < min || value.length > max) return refuse(context, `must have ${min} to ${max} elements`);
    const parsed: z.output<T>[] = [];
    for (const [at, element] of value.entries()) {
      const result = item.safeParse(element);
      if (!result.success) {
        const issue = result.error.issues[0];
        return refuse(context, issue?.message ?? 'invalid', [at, ...(issue?.path ?? [])]);
      }
      parsed.push(result.data);
    }
    return parsed;
  });

/** Returns the schema for a map of strings. Lengths are in UTF-16 code units. */
export const boundedTexts = (max: { entries: number; keyLength: number; valueLength: number }) =>
  z.unknown().transform((value, context): Record<string, string> => {
    if (!isMapping(value)) return refuse(context, 'must be an object');
    const keys = Object.keys(value);
    if (keys.length > max.entries) return refuse(context, `must have at most ${max.entries} entries`);
    const parsed: Record<string, string> = {};
    for (const key of keys) {
      if (key === '__proto__') return refuse(context, 'must have no key __proto__');
      if (key.length === 0 || key.length > max.keyLength)
        return refuse(context, `must have keys of 1 to ${max.keyLength} characters`);
      const text = (value as Record<string, unknown>)[key];
      if (typeof text !== 'string' || text.length > max.valueLength)
        return refuse(context, `must be text of at most ${max.valueLength} characters`, [key]);
      parsed[key] = text;
    }
    return parsed;
  });
