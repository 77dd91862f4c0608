import { pointer as pointerText } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Json } from '../provider/provider.ts';

/** A value in a structured file. Mappings are Maps, so that a key such as `__proto__` needs no special handling. */
export type Value = null | boolean | number | string | Value[] | Map<string, Value>;

/** The keys that lead to a value. */
export type Pointer = readonly string[];

/** Converts a declared value. */
export function declaredValue(json: unknown): Value {
  if (Array.isArray(json)) return json.map(declaredValue);
  if (typeof json === 'object' && json !== null)
    return new Map(Object.entries(json).map(([key, item]) => [key, declaredValue(item)]));
  return json as Value;
}

export function jsonOf(value: Value): Json {
  if (Array.isArray(value)) return value.map(jsonOf);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, jsonOf(item)]));
  return value;
}

/** Returns the value for display. */
export const shownValue = (value: Value): string => (typeof value === 'string' ? value : JSON.stringify(jsonOf(value)));

export const isEmpty = (value: Value): boolean => value === null || (value instanceof Map && value.size === 0);

/**
 * Reports whether two values are equal. An empty mapping equals null, because an empty file or section may mean either.
 */
export function same(one: Value, other: Value): boolean {
  if (isEmpty(one)) return isEmpty(other);
  if (one instanceof Map)
    return (
      other instanceof Map &&
      one.size === other.size &&
      [...one].every(([key, item]) => other.has(key) && same(item, other.get(key) as Value))
    );
  if (Array.isArray(one))
    return (
      Array.isArray(other) && one.length === other.length && one.every((item, at) => same(item, other[at] as Value))
    );
  return Object.is(one, other);
}

/** The target of a pointer: a value, or the innermost container that exists. */
export type Place =
  | { readonly found: true; readonly value: Value }
  | { readonly found: false /** Number of keys that exist. */; readonly depth: number; readonly container: Value };

const nounOf = (value: Value): string =>
  Array.isArray(value)
    ? 'a list'
    : typeof value === 'string'
      ? 'text'
      : typeof value === 'number'
        ? 'a number'
        : 'true or false';

const numeral = /^(0|[1-9]\d{0,8})$/;

/** @throws HostFailure if no value can exist at the pointer */
export function locate(root: Value, pointer: Pointer, path: string): Place {
  let value = root;
  for (const [depth, key] of pointer.entries()) {
    if (value instanceof Map) {
      if (!value.has(key)) return { found: false, depth, container: value };
      value = value.get(key) as Value;
    } else if (value === null) {
      return { found: false, depth, container: value };
    } else {
      const at = depth === 0 ? 'its root' : pointerText(pointer.slice(0, depth));
      if (!Array.isArray(value)) throw new HostFailure(`${path}: ${at} is ${nounOf(value)}, which has no keys`);
      const element = numeral.test(key) ? value[Number(key)] : undefined;
      if (element === undefined)
        throw new HostFailure(
          `${path}: ${at} is a list of ${value.length} elements, and has no element "${key}"; declare the whole list as the value`,
        );
      value = element;
    }
  }
  return { found: true, value };
}

/**
 * Returns a copy with another value at the pointer, and with the missing mappings that lead to it.
 * @param value undefined to remove it
 */
export function withValue(root: Value, pointer: Pointer, value: Value | undefined): Value {
  const [key, ...rest] = pointer;
  if (key === undefined) return value ?? null;
  if (Array.isArray(root)) return root.map((item, at) => (String(at) === key ? withValue(item, rest, value) : item));
  const copy = new Map(root instanceof Map ? root : []);
  if (rest.length === 0 && value === undefined) copy.delete(key);
  else copy.set(key, withValue(copy.get(key) ?? null, rest, value));
  return copy;
}

/** Returns the value nested in mappings with these keys. */
export const nested = (keys: Pointer, value: Value): Value =>
  keys.reduceRight<Value>((inner, key) => new Map([[key, inner]]), value);
