import { canonicalJson } from '../../mapping.ts';
import { kinds, type ResourceType } from '../kinds.ts';

/** The fields of a resource. Two values are equal if their canonical JSON is equal. */
export type Fields = Readonly<Record<string, unknown>>;

export interface DeclaredFields {
  readonly type: ResourceType;
  readonly fields: Fields;
  readonly onlyIf: unknown;
}

/** Why two declarations of a resource cannot be merged. */
export interface Difference {
  /** The fields that differ; empty if another part differs. */
  readonly fields: readonly string[];
  readonly reason: string;
}

/**
 * Compares two declarations of a resource. They can be merged if no field has two different values, so each declaration
 * may set fields that the other omits.
 * @returns null if they can be merged
 */
export function differenceBetween(one: DeclaredFields, other: DeclaredFields): Difference | null {
  if (one.type !== other.type) return { fields: [], reason: `one is a ${one.type} and the other a ${other.type}` };
  const kind = kinds[one.type];
  const identifying = new Set(kind.canonical === undefined ? [] : kind.identifiedBy(other.fields));
  for (const [field, value] of Object.entries(other.fields)) {
    if (identifying.has(field)) continue;
    if (!Object.hasOwn(one.fields, field)) continue;
    if (comparable(one.type, field, one.fields[field]) !== comparable(one.type, field, value))
      return { fields: [field], reason: `the values of \`${field}\` differ` };
  }
  // An absent `ensure` means `present`; it does not leave the decision to the other declaration.
  if (Object.hasOwn(one.fields, 'ensure') !== Object.hasOwn(other.fields, 'ensure'))
    return { fields: ['ensure'], reason: 'the values of `ensure` differ' };
  for (const group of kind.exclusive) {
    const mine = group.find((name) => Object.hasOwn(one.fields, name));
    const theirs = group.find((name) => Object.hasOwn(other.fields, name));
    if (mine !== undefined && theirs !== undefined && mine !== theirs)
      return { fields: [mine, theirs], reason: `\`${mine}\` cannot be combined with \`${theirs}\`` };
  }
  if (canonicalJson(one.onlyIf ?? null) !== canonicalJson(other.onlyIf ?? null))
    return { fields: [], reason: 'the conditions `only_if` differ' };
  return null;
}

/** Returns a string that is equal for equal field values. */
function comparable(type: ResourceType, name: string, value: unknown): string {
  const kind = kinds[type];
  const field = kind.required[name] ?? kind.optional[name];
  return canonicalJson(field?.canonical !== undefined && typeof value === 'string' ? field.canonical(value) : value);
}
