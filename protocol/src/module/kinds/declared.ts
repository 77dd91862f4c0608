import { z } from 'zod';
import { quoted, suggestion } from '../nearest.ts';

/** Keys with this prefix are ignored at every level, for notes and YAML anchors. */
export const isExtensionKey = (key: string): boolean => key.startsWith('x-');

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * An object with known keys only. `x-` keys are dropped, a null value counts as absent, and an unknown key is refused with
 * the closest known name.
 * @param noun  what the object is, for messages
 * @param shape every field, the optional ones being `.optional()`
 * @param meta  goes into the JSON Schema
 * @param keyNoun what a key is, for messages
 */
export function closed<S extends z.ZodRawShape>(
  noun: string,
  shape: S,
  meta: Record<string, unknown> = {},
  keyNoun = 'field',
) {
  const known = Object.keys(shape);
  const object = z
    .strictObject(shape, {
      error: (issue) =>
        issue.code === 'unrecognized_keys'
          ? // Writes one line for each key, in order; the code that converts issues to faults splits the lines again.
            issue.keys.map((key) => unknownKey(keyNoun, key, known)).join('\n')
          : `must be ${noun}`,
    })
    .meta(meta);
  return z.preprocess((value) => {
    if (!isPlainObject(value)) return value;
    const kept: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      if (isExtensionKey(key)) continue;
      if (value[key] === null && Object.hasOwn(shape, key)) continue;
      kept[key] = value[key];
    }
    return kept;
  }, object);
}

export const unknownKey = (noun: string, key: string, known: readonly string[]): string =>
  `unknown ${noun} ${quoted(key)}${suggestion(key, known)}`;
