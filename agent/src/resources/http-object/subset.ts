import { pointerKeys } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Json } from '../provider/provider.ts';

/** Compares a declared value with a part of a response. Keys may have any name, such as `__proto__`. */

type JsonMap = { [key: string]: Json };

/** The keys that lead to a value. */
export type Pointer = readonly string[];

/** A value that was read, or undefined if its key does not exist. */
export type Found = Json | undefined;

const isMap = (value: Found): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !((value as object) instanceof InexactNumber);

const valueIn = (value: Found, key: string): Found => {
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,6})$/.test(key) ? value[Number(key)] : undefined;
  return isMap(value) && Object.hasOwn(value, key) ? value[key] : undefined;
};

/** Returns the value at a pointer; undefined if it does not exist. */
export const valueAt = (value: Found, pointer: Pointer): Found => pointer.reduce<Found>(valueIn, value);

/** Returns the value with `to` at the pointer, or without the key if `to` is undefined. */
export function withValueAt(value: Json, [key, ...rest]: Pointer, to: Found): Json {
  if (key === undefined) return to === undefined ? value : to;
  const kept = isMap(value) ? value : {};
  const inner = Object.hasOwn(kept, key) ? (kept[key] as Json) : undefined;
  if (to === undefined && (inner === undefined || (rest.length > 0 && !isMap(inner)))) return value;
  const next = rest.length === 0 ? to : withValueAt(inner ?? {}, rest, to);
  const entries = Object.entries(kept).filter(([name]) => name !== key || next !== undefined);
  if (next === undefined) return Object.fromEntries(entries);
  if (inner === undefined) return Object.fromEntries([...entries, [key, next]]);
  return Object.fromEntries(entries.map(([name, item]) => [name, name === key ? next : item]));
}

/** Reports whether two values are equal. The order of keys does not matter. */
export function isSame(one: Found, other: Found): boolean {
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => isSame(item, other[at]));
  if (!isMap(one)) return one === other;
  if (!isMap(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  );
}

/** A declared key with its declared value and its current value. */
export interface Leaf {
  pointer: Pointer;
  found: Found;
  declared: Json;
}

/** Returns the declared keys. Mappings are walked key by key if both values are mappings. */
export function leaves(declared: Json, found: Found, pointer: Pointer = []): Leaf[] {
  if (!isMap(declared) || !isMap(found)) return [{ pointer, found, declared }];
  return Object.entries(declared).flatMap(([key, value]) => leaves(value, valueIn(found, key), [...pointer, key]));
}

/** Returns the declared keys whose value differs. Keys that are not declared may have any value. */
export const differences = (declared: Json, found: Found): Leaf[] =>
  leaves(declared, found).filter((leaf) => !isSame(leaf.declared, leaf.found));

/** Returns the part of a value that contains the declared keys; undefined if there is none. */
export function partOf(declared: Json, found: Found): Found {
  if (!isMap(declared) || !isMap(found)) return found;
  return Object.fromEntries(
    Object.entries(declared).flatMap(([key, value]) => {
      const part = partOf(value, valueIn(found, key));
      return part === undefined ? [] : [[key, part]];
    }),
  );
}

/** Returns the value with all declared keys set. */
export function merged(declared: Json, found: Found): Json {
  if (!isMap(declared) || !isMap(found)) return declared;
  const kept = Object.entries(found).filter(([key]) => !Object.hasOwn(declared, key));
  const set = Object.entries(declared).map(([key, value]) => [key, merged(value, valueIn(found, key))] as const);
  return Object.fromEntries([...kept, ...set]);
}

/** @param text a JSON pointer (RFC 6901), or the name of a key at the top */
export const pointerOf = (text: string): Pointer => pointerKeys(text.startsWith('/') ? text : `/${text}`);

/** Maximum nesting depth of a response. */
const maxDepth = 100;

/** A number in a response that JavaScript cannot represent exactly. */
class InexactNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/**
 * Parses a response. If a key occurs twice, the last one is used.
 * @throws HostFailure if it is not JSON, or nested too deeply
 */
export function parseAnswer(text: string): Json {
  if (depthOf(text) > maxDepth) throw new HostFailure(`the answer is nested more than ${maxDepth} levels deep`);
  try {
    return JSON.parse(text, exactOrMarked as Parameters<typeof JSON.parse>[1]) as Json;
  } catch {
    throw new HostFailure('the answer is not JSON');
  }
}

/** Returns the maximum nesting of brackets outside of strings. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isInString && character === '\\') at += 1;
    else if (character === '"') isInString = !isInString;
    else if (!isInString && (character === '[' || character === '{')) deepest = Math.max(deepest, ++depth);
    else if (!isInString && (character === ']' || character === '}')) depth -= 1;
  }
  return deepest;
}

function exactOrMarked(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value;
  const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isExact ? value : new InexactNumber(source);
}

/**
 * Throws if a part of a response has a number that could neither be compared nor restored.
 * @throws HostFailure that names the number
 */
export function expectExact(value: Found): void {
  if (value instanceof InexactNumber)
    throw new HostFailure(
      `the answer has the number ${value.source.slice(0, 40)} which the agent can neither compare nor restore exactly; do not declare its key`,
    );
  if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) expectExact(item);
}
