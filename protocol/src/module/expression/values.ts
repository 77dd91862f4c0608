import { Duration, UnsignedInt } from '@marcbachmann/cel-js/evaluator';
import { secretName } from '../../secret-name.ts';
import type { Json } from '../document.ts';

/** Maximum length of an expression's result, in characters. */
export const maximumOutput = 1024 * 1024;

/** A secret, by name. Expressions never see its value, which is inserted at dispatch. */
export class Secret {
  // Private, because an expression can read the properties of a value.
  readonly #name: string;
  readonly #fallback: string | null;

  constructor(name: string, fallback: string | null = null) {
    this.#name = name;
    this.#fallback = fallback;
  }

  static nameOf = (secret: Secret): string => secret.#name;

  static fallbackOf = (secret: Secret): string | null => secret.#fallback;
}

/** The value of `omit`, which omits a key. */
export class Omit {}

export const omitted = new Omit();

export const secretAsArgument =
  'a secret cannot be the argument of a function or an operator: insert it into text as ${{ secrets.NAME }}';

/** @throws ExpressionError if the text is not a valid secret name */
export function secretOf(name: unknown): Secret {
  if (typeof name === 'string' && secretName.test(name)) return new Secret(name);
  throw new ExpressionError(
    'the name of a secret consists of letters, digits, "_", and "-", and does not begin with a digit',
  );
}

/** The variable `secrets`: returns a {@link Secret} for every name. */
export class SecretNames extends Map<string, Secret> {
  override get(name: string): Secret {
    return secretOf(name);
  }
}

const known = new WeakMap<object, boolean>();

/** Reports whether a value is a secret, all secrets, or a list or map that contains a secret. */
export function containsSecret(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Secret || value instanceof SecretNames) return true;
  const items = Array.isArray(value) ? value : value instanceof Map ? value.values() : undefined;
  if (items === undefined && value.constructor !== Object) return false;
  // Cached, because a loop can read the same list for each of its elements.
  let found = known.get(value);
  if (found === undefined) {
    found = [...(items ?? Object.values(value))].some(containsSecret);
    known.set(value, found);
  }
  return found;
}

/** An error in an expression. Its message is shown unchanged. */
export class ExpressionError extends Error {}

/** Returns the result, or the message of an ExpressionError. */
export function reasonOrValue<T extends object | boolean>(evaluate: () => T): T | string {
  try {
    return evaluate();
  } catch (error) {
    if (error instanceof ExpressionError) return error.message;
    throw error;
  }
}

const converted = new WeakMap<object, unknown>();

/**
 * Converts a value to its CEL form: whole numbers become `int`, and mappings become `Map`, so that a key such as
 * `constructor` is an ordinary key. Caches lists and mappings, because many agents share the values of an assignment.
 */
export function toCel(value: Json): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  const known = converted.get(value);
  if (known !== undefined) return known;
  const result = Array.isArray(value)
    ? value.map(toCel)
    : new Map(Object.entries(value).map(([key, item]) => [key, toCel(item)]));
  converted.set(value, result);
  return result;
}

/** Returns the entries of a CEL map, which is a `Map` or, for a literal, an object. */
export const entriesOf = (map: object): [unknown, unknown][] =>
  map instanceof Map ? [...map.entries()] : Object.entries(map);

const secretInValue = 'a secret cannot be part of a value: insert it into text as ${{ secrets.NAME }}';

/**
 * Converts a CEL value to JSON. Timestamps become RFC 3339 text, and durations become text such as `90s`.
 * @throws ExpressionError if JSON has no such value, or if the value has more than `maximumOutput` characters
 */
export function fromCel(value: unknown): Json {
  let left = maximumOutput;
  const convert = (item: unknown): Json => {
    left -= typeof item === 'string' ? item.length : 1;
    if (left < 0) throw new ExpressionError('the expression yields more than 1 MiB: shorten the value');
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return item;
    if (typeof item === 'bigint') return safeInteger(item);
    if (typeof item === 'number') {
      if (Number.isFinite(item)) return item;
      throw new ExpressionError(`the expression yields ${item}, which is not a number that a module can hold`);
    }
    if (Array.isArray(item)) return item.filter((entry) => !(entry instanceof Omit)).map(convert);
    if (typeof item === 'object') return convertObject(item, convert);
    throw new ExpressionError('the expression yields a value that a module cannot hold');
  };
  return convert(value);
}

function convertObject(value: object, convert: (item: unknown) => Json): Json {
  if (value instanceof Secret || value instanceof SecretNames) throw new ExpressionError(secretInValue);
  if (value instanceof UnsignedInt) return safeInteger(value.valueOf());
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Duration) return String(value);
  if (value instanceof Uint8Array)
    throw new ExpressionError('the expression yields bytes: convert them with base64(…) or string(…)');
  if (value instanceof Omit) throw new ExpressionError('omit can only be a whole value, an element, or a key’s value');
  if (!(value instanceof Map) && value.constructor !== Object)
    throw new ExpressionError('the expression yields a value that a module cannot hold: convert it with string(…)');
  const entries = entriesOf(value).filter(([, item]) => !(item instanceof Omit));
  return Object.fromEntries(
    entries.map(([key, item]) => {
      const text = typeof key === 'string' ? key : String(convert(key));
      return [String(convert(text)), convert(item)];
    }),
  );
}

/** Returns a timestamp as RFC 3339 text, without a fraction if it is zero. */
export const timestampText = (time: Date): string => time.toISOString().replace(/\.0+Z$/, 'Z');

function safeInteger(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new ExpressionError(`the number ${value} is beyond 2^53, so it loses digits: use string(…) for its text`);
}

/**
 * Converts a value to text for use within text.
 * @returns undefined for a list or a map
 * @throws ExpressionError if the value has no text form
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'bigint' || value instanceof UnsignedInt) return String(value.valueOf());
  if (value === null) throw new ExpressionError('the expression yields null: add | default("…")');
  if (value instanceof Omit) throw new ExpressionError('omit leaves a whole value out, so it cannot be part of text');
  const json = fromCel(value);
  return typeof json === 'object' ? undefined : String(json);
}
