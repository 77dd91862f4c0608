import { type Fault, MusterError } from '@muster/protocol';
import { suggestion } from '@muster/protocol/nearest';
import type { z } from 'zod';
import { pointer } from './pointer.ts';

/** Maximum number of reported errors. */
const maxFaults = 100;

type Issue = z.core.$ZodIssue;

/**
 * Validates a value with a schema.
 * @param part name of the validated part of the request, for the error message
 * @throws MusterError invalid_input, with one entry per error. Messages never contain values, because they may be
 *   secret.
 */
export function readInput<S extends z.ZodType>(schema: S, value: unknown, part: 'query' | 'body'): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw invalidInput(part, faultsOf(schema, value, read.error.issues, part));
}

export function invalidInput(part: 'query' | 'body', faults: readonly Fault[]): MusterError {
  const first = faults[0];
  const more = faults.length > 1 ? `; and ${faults.length - 1} more` : '';
  const where = first && first.path !== '' ? `${first.path.slice(1)}: ` : '';
  return new MusterError('invalid_input', `The ${part} is not valid: ${where}${first?.message ?? ''}${more}.`, faults);
}

function faultsOf(schema: z.ZodType, value: unknown, issues: readonly Issue[], part: 'query' | 'body'): Fault[] {
  const faults: Fault[] = [];
  for (const issue of issues) {
    if (faults.length >= maxFaults) break;
    if (issue.code === 'unrecognized_keys') {
      const known = namesAt(schema, issue.path);
      const unused = known.filter((name) => !hasAt(value, [...issue.path, name]));
      const noun = part === 'query' ? 'parameter' : 'field';
      for (const key of issue.keys.slice(0, maxFaults - faults.length))
        faults.push({ path: pointer([...issue.path, key]), message: `unknown ${noun}${suggestion(key, unused)}` });
    } else {
      const message = hasAt(value, issue.path) ? worded(issue) : 'is required';
      faults.push({ path: pointer(issue.path), message });
    }
  }
  return faults;
}

/** Returns the schema's own message, or replaces the validation library's default message with plain English. */
function worded(issue: Issue): string {
  const { message } = issue;
  if (issue.code === 'too_big' && message.startsWith('Too big:')) return bound('at most', issue.origin, issue.maximum);
  if (issue.code === 'too_small' && message.startsWith('Too small:'))
    return bound('at least', issue.origin, issue.minimum);
  if (issue.code === 'invalid_value' && message.startsWith('Invalid option:'))
    return `must be one of ${issue.values.map(String).join(', ')}`;
  // The union's discriminator matches no variant.
  const choices = issue.code === 'invalid_union' ? /^Invalid discriminator value\. Expected (.*)$/.exec(message) : null;
  if (choices) return `must be one of ${choices[1]!.replaceAll("'", '').replaceAll(' | ', ', ')}`;
  return message.replace(/^Invalid input: /, '');
}

function bound(relation: string, origin: string, limit: number | bigint): string {
  const unit = { string: 'character', array: 'item' }[origin];
  if (unit === undefined) return `must be ${relation} ${limit}`;
  return `must have ${relation} ${limit} ${unit}${limit === 1 ? '' : 's'}`;
}

/** Reports whether the value at the path is defined. */
function hasAt(value: unknown, path: readonly PropertyKey[]): boolean {
  let at = value;
  for (const segment of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, segment)) return false;
    at = (at as Record<PropertyKey, unknown>)[segment];
  }
  return at !== undefined;
}

interface Definition {
  type: string;
  innerType?: z.ZodType;
  in?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
  shape?: Record<string, z.ZodType>;
}

/** Returns the field names of the object schema at a path; none if the path leads through a union. */
function namesAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: z.ZodType | undefined = schema;
  for (const segment of path) {
    const definition: Definition | null = outermost(at);
    at = definition?.shape?.[String(segment)] ?? definition?.element ?? definition?.valueType;
  }
  return Object.keys(outermost(at)?.shape ?? {});
}

/** Removes optional, nullable, and transform wrappers from a schema. */
function outermost(schema: z.ZodType | undefined): Definition | null {
  let definition = schema?._zod.def as Definition | undefined;
  for (let next = definition?.innerType ?? definition?.in; next; next = definition?.innerType ?? definition?.in)
    definition = next._zod.def as Definition;
  return definition ?? null;
}
