import type { FieldChange } from '@muster/protocol';

/**
 * Returns the changes that give an object the wanted values. A field without a wanted value stays unchanged.
 * @param current null if the object does not exist
 */
export const fieldChanges = <Field extends string>(
  fields: readonly Field[],
  wanted: { readonly [F in Field]?: unknown },
  current: { readonly [F in Field]?: unknown } | null,
): FieldChange[] =>
  fields.flatMap((field) => {
    const [from, to] = [current?.[field] ?? null, wanted[field] ?? null];
    return to === null || to === from ? [] : [{ field, from: from === null ? null : String(from), to: String(to) }];
  });
