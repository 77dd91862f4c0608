import { z } from 'zod';
import type { OnlyIf } from '../document.ts';
import { closed } from '../kinds/declared.ts';
import { formatted } from '../kinds/field.ts';
import { allOf, maxLength, noNul, notEmpty, unixDirectory, withoutClosingSlash } from '../kinds/format.ts';
import type { Path } from '../source/tree.ts';
import { forward } from './declared.ts';

/** `only_if`: its schema, meaning, and limits. */

/** Maximum nesting of `not`. Three levels suffice for any combination of conditions. */
const maximumDepth = 3;
/** Maximum number of paths and commands in one condition. */
const maximumParts = 16;

const path = formatted(
  'Absolute path that must exist. Symbolic links are followed, so a dangling link does not exist',
  unixDirectory,
  { pattern: '^/' },
);
const command = formatted(
  'Shell command that must exit with code 0. It must only read. It runs as root, with the time limit of a script’s check',
  allOf(notEmpty, maxLength(4096), noNul),
);
const leaves = { exists: path, command } as const;
type Leaf = keyof typeof leaves;

const noun = 'a mapping of exists, command, or not, or a list of such mappings, which must all hold';

/** Returns the schema for a condition as written. */
const conditionAt = (depth: number): z.ZodType =>
  z.unknown().superRefine((given, context) => {
    if (!Array.isArray(given)) return forward(mappingAt(depth), given, context);
    if (given.length === 0 || given.length > maximumParts)
      return context.addIssue({ code: 'custom', message: `must have 1 to ${maximumParts} conditions` });
    for (const [index, part] of given.entries())
      forward(Array.isArray(part) ? nested : mappingAt(depth), part, context, [index]);
  });

const nested = z.unknown().superRefine((_, context) => {
  context.addIssue({ code: 'custom', message: 'is a list in a list: write its conditions in the outer list' });
});

const mappingAt = (depth: number): z.ZodType =>
  closed(noun, {
    exists: path.declared.optional(),
    command: command.declared.optional(),
    not: z
      .unknown()
      .superRefine((given, context) => {
        if (given === undefined) return;
        if (depth > 0) forward(conditionAt(depth - 1), given, context);
        else context.addIssue({ code: 'custom', message: `must not be nested more than ${maximumDepth} times` });
      })
      .optional(),
  }).superRefine((given, context) => {
    const keys = Object.keys(given);
    const message =
      keys.length === 0
        ? 'needs exists, command, or not'
        : `has ${keys.join(' and ')}: write a list with a mapping for each`;
    if (keys.length !== 1) context.addIssue({ code: 'custom', message });
  });

/** Returns the JSON Schema for a condition. */
function formAt(depth: number): Record<string, unknown> {
  const properties: Record<string, unknown> = {
    exists: { type: 'string', ...path.declared.meta() },
    command: { type: 'string', minLength: 1, ...command.declared.meta() },
    ...(depth === 0
      ? {}
      : {
          not: {
            ...formAt(depth - 1),
            description: 'A condition that must not hold; in a list, at least one condition must not hold',
          },
        }),
  };
  const mapping = { type: 'object', properties, additionalProperties: false, minProperties: 1, maxProperties: 1 };
  return { anyOf: [mapping, { type: 'array', items: mapping, minItems: 1, maxItems: maximumParts }] };
}

/** Schema of `only_if`. */
export const onlyIfSchema = conditionAt(maximumDepth)
  .superRefine((given, context) => {
    let parts = 0;
    mapOnlyIf(readOnlyIf(given), [], (text) => {
      parts++;
      return text;
    });
    if (parts > maximumParts)
      context.addIssue({ code: 'custom', message: `must have at most ${maximumParts} paths and commands` });
  })
  .meta({
    description:
      'Condition that the machine evaluates before it applies the resource; if it is not met, the resource is skipped',
    // Evaluated only for the JSON Schema, which programs that must start quickly do not need.
    get anyOf() {
      return formAt(maximumDepth).anyOf;
    },
  });

/** Reads a condition as written. Skips malformed parts. */
export function readOnlyIf(value: unknown, depth = maximumDepth): OnlyIf | null {
  if (typeof value !== 'object' || value === null || depth < 0) return null;
  if (Array.isArray(value)) return value.map((part) => readOnlyIf(part, depth) ?? []);
  const { exists, command, not } = value as Readonly<Record<string, unknown>>;
  if (typeof exists === 'string') return { exists };
  if (typeof command === 'string') return { command };
  const inner = readOnlyIf(not, depth - 1);
  return inner === null ? null : { not: inner };
}

/**
 * Replaces the strings in a condition. Also simplifies the condition, so that a condition that older agents support has
 * the form that they expect.
 * @param change returns the new text, or null to omit the part
 * @returns null if no part remains
 */
export function mapOnlyIf(
  condition: OnlyIf | null,
  at: Path,
  change: (text: string, leaf: Leaf, path: Path) => string | null,
): OnlyIf | null {
  if (condition === null) return null;
  if (Array.isArray(condition)) {
    const parts = condition.flatMap((part, index) => mapOnlyIf(part, [...at, index], change) ?? []);
    return parts.length === 0 ? null : parts.length === 1 ? (parts[0] as OnlyIf) : parts;
  }
  if ('not' in condition) {
    const inner = mapOnlyIf(condition.not, [...at, 'not'], change);
    return inner === null ? null : { not: inner };
  }
  if ('exists' in condition) {
    const exists = change(condition.exists, 'exists', [...at, 'exists']);
    return exists === null ? null : { exists: withoutClosingSlash(exists) };
  }
  const changed = change((condition as { command: string }).command, 'command', [...at, 'command']);
  return changed === null ? null : { command: changed };
}

/** Returns the error in an evaluated path or command; undefined if it is valid. */
export const onlyIfFault = (text: string, leaf: Leaf): string | undefined =>
  leaves[leaf].resolved.safeParse(text).error?.issues[0]?.message;
