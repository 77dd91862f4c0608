import { secretName } from '../../secret-name.ts';
import type { Json } from '../document.ts';
import { compiledPattern, hasMatch, maximumPattern, statesOf } from '../expression/functions/patterns.ts';
import { isExtensionKey, unknownKey } from '../kinds/declared.ts';

/**
 * Validation of parameter values by the keywords of JSON Schema (draft 2020-12) that modules may use. Interprets the
 * schema, because the console's Content-Security-Policy forbids code that validators generate.
 * @see https://json-schema.org/draft/2020-12/json-schema-validation
 */

export type ValueSchema = Readonly<Record<string, Json>>;

export interface ValueFault {
  /** Path in the value, or in the schema. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Path = ValueFault['path'];

/** Names of types. `list` and `map` are the names that modules use for `array` and `object`. */
const types = ['string', 'integer', 'number', 'boolean', 'list', 'array', 'map', 'object', 'null'] as const;
type Type = (typeof types)[number];

export const isMapping = (value: unknown): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const fitsType: Record<Type, (value: Json) => boolean> = {
  string: (value) => typeof value === 'string',
  integer: (value) => Number.isSafeInteger(value),
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  boolean: (value) => typeof value === 'boolean',
  list: Array.isArray,
  array: Array.isArray,
  map: isMapping,
  object: isMapping,
  null: (value) => value === null,
};

const typeText: Record<Type, string> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  array: 'a list',
  map: 'a mapping',
  object: 'a mapping',
  null: 'null',
};

/** Maximum states of a pattern, for the time and memory that it takes. */
const maximumStates = 5000;
const patternForm = `a regular expression of RE2 with at most ${maximumPattern} characters, such as "^[a-z]+$"; it has no lookaround, no backreferences, and no large repetitions`;
const isPattern = (value: Json): boolean =>
  typeof value === 'string' &&
  value.length <= maximumPattern &&
  statesOf(value) <= maximumStates &&
  compiledPattern(value) !== null;

const isCount = (value: Json): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = fitsType.number;

/** The keywords, and the form of each. */
const keywords: Readonly<Record<string, { readonly fits: (value: Json) => boolean; readonly form: string }>> = {
  type: {
    fits: (value) => [value].flat().every((one) => types.some((type) => type === one)),
    form: `one of ${types.join(', ')}, or a list of them`,
  },
  enum: { fits: (value) => Array.isArray(value) && value.length > 0, form: 'a list of values' },
  const: { fits: () => true, form: 'a value' },
  minimum: { fits: isNumber, form: 'a number' },
  maximum: { fits: isNumber, form: 'a number' },
  exclusiveMinimum: { fits: isNumber, form: 'a number' },
  exclusiveMaximum: { fits: isNumber, form: 'a number' },
  multipleOf: { fits: (value) => isNumber(value) && (value as number) > 0, form: 'a number above 0' },
  minLength: { fits: isCount, form: 'a whole number from 0' },
  maxLength: { fits: isCount, form: 'a whole number from 0' },
  pattern: { fits: isPattern, form: patternForm },
  format: { fits: (value) => value === 'secret-name', form: '"secret-name"' },
  minItems: { fits: isCount, form: 'a whole number from 0' },
  maxItems: { fits: isCount, form: 'a whole number from 0' },
  uniqueItems: { fits: fitsType.boolean, form: 'true or false' },
  items: { fits: isMapping, form: 'a mapping of keywords, such as { type: string }' },
  properties: { fits: isMapping, form: 'a mapping of keys to keywords' },
  required: {
    fits: (value) => Array.isArray(value) && value.every(fitsType.string),
    form: 'a list of keys',
  },
  additionalProperties: {
    fits: (value) => typeof value === 'boolean' || isMapping(value),
    form: 'true, false, or a mapping of keywords',
  },
  minProperties: { fits: isCount, form: 'a whole number from 0' },
  maxProperties: { fits: isCount, form: 'a whole number from 0' },
  title: { fits: fitsType.string, form: 'text' },
  description: { fits: fitsType.string, form: 'text' },
  default: { fits: () => true, form: 'a value' },
};

/** The keywords that a parameter can have in addition to its own fields. */
export const valueKeywords: readonly string[] = Object.keys(keywords).filter(
  (name) => !['type', 'title', 'description', 'default'].includes(name),
);

/** Returns the JSON Schema of a keyword's value, for editors. */
export const keywordForm = (name: string): Record<string, unknown> => {
  const form = { description: `Keyword of JSON Schema: ${keywords[name]?.form}` };
  return name === 'format' ? { ...form, enum: ['secret-name'] } : form;
};

/** Returns the errors in a schema as declared. */
export function schemaFaults(schema: ValueSchema, path: Path = []): ValueFault[] {
  return Object.entries(schema).flatMap(([name, value]): ValueFault[] => {
    if (isExtensionKey(name) || value === null) return [];
    const at = [...path, name];
    const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
    if (keyword === undefined) return [{ path: at, message: unknownKey('keyword', name, Object.keys(keywords)) }];
    if (!keyword.fits(value)) return [{ path: at, message: `must be ${keyword.form}` }];
    if (name === 'properties')
      return Object.entries(value).flatMap(([key, inner]) =>
        isMapping(inner)
          ? schemaFaults(inner, [...at, key])
          : [{ path: [...at, key], message: 'must be a mapping of keywords, such as { type: string }' }],
      );
    return (name === 'items' || name === 'additionalProperties') && isMapping(value) ? schemaFaults(value, at) : [];
  });
}

/** Keywords that a part of a value need not satisfy, because other parts are added to it. */
const ofWholeValues: ReadonlySet<string> = new Set(['required', 'minProperties', 'minItems', 'enum', 'const']);

/**
 * Returns the schema of a part of a value: a layer of a parameter that merges its layers.
 * @param merge `deep` for mappings whose mappings are parts as well; otherwise, a part has whole elements
 */
export function partSchema(schema: ValueSchema, merge: 'deep' | 'append' | 'unique'): ValueSchema {
  const kept = Object.entries(schema).filter(
    ([name]) => !ofWholeValues.has(name) && !(merge === 'unique' && (name === 'uniqueItems' || name === 'maxItems')),
  );
  if (merge !== 'deep') return Object.fromEntries(kept);
  const ofMapping = (inner: Json): Json =>
    isMapping(inner) && [inner.type].flat().some((type) => type === 'map' || type === 'object')
      ? partSchema(inner, merge)
      : inner;
  return Object.fromEntries(
    kept.map(([name, value]): [string, Json] => {
      if (name === 'properties' && isMapping(value))
        return [name, Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, ofMapping(inner)]))];
      return [name, name === 'additionalProperties' ? ofMapping(value) : value];
    }),
  );
}

const maximumFaults = 20;

/** A validation of one value. */
interface Validation {
  readonly faults: ValueFault[];
  /** Remaining work for patterns, in states that are visited for a character; about 0.3 s in total. */
  patternWork: number;
}

/** Returns the errors in a value: at most 20. */
export function valueFaults(schema: ValueSchema, value: Json): ValueFault[] {
  const validation: Validation = { faults: [], patternWork: 10_000_000 };
  check(schema, value, [], validation);
  return validation.faults;
}

function check(schema: ValueSchema, value: Json, path: Path, validation: Validation): void {
  const { faults } = validation;
  if (faults.length >= maximumFaults) return;
  const fault = (message: string): void => {
    if (faults.length < maximumFaults) faults.push({ path, message });
  };
  const allowed = [schema.type ?? []].flat() as Type[];
  if (allowed.length > 0 && !allowed.some((type) => !Object.hasOwn(fitsType, type) || fitsType[type](value))) {
    fault(`must be ${allowed.map((type) => typeText[type]).join(' or ')}, to match its type`);
    return;
  }
  if (Array.isArray(schema.enum) && !canonicalSet(schema.enum).has(canonical(value)))
    fault(`must be one of ${shown(schema.enum)}`);
  if (schema.const !== undefined && schema.const !== null && !isEqual(schema.const, value))
    fault(`must be ${JSON.stringify(schema.const)}`);
  if (typeof value === 'number') checkNumber(schema, value, fault);
  else if (typeof value === 'string') checkText(schema, value, validation, fault);
  else if (Array.isArray(value)) checkList(schema, value, path, validation, fault);
  else if (isMapping(value)) checkMapping(schema, value, path, validation, fault);
}

type Report = (message: string) => void;

/** Calls a function with the keyword's value if it is given. */
function limit(
  schema: ValueSchema,
  keyword: string,
  apply: (bound: number) => string | undefined,
  fault: Report,
): void {
  const bound = schema[keyword];
  const message = typeof bound === 'number' ? apply(bound) : undefined;
  if (message !== undefined) fault(message);
}

function checkNumber(schema: ValueSchema, value: number, fault: Report): void {
  limit(schema, 'minimum', (bound) => (value < bound ? `must be at least ${bound}` : undefined), fault);
  limit(schema, 'maximum', (bound) => (value > bound ? `must be at most ${bound}` : undefined), fault);
  limit(schema, 'exclusiveMinimum', (bound) => (value <= bound ? `must be above ${bound}` : undefined), fault);
  limit(schema, 'exclusiveMaximum', (bound) => (value >= bound ? `must be below ${bound}` : undefined), fault);
  limit(schema, 'multipleOf', (step) => (isMultiple(value, step) ? undefined : `must be a multiple of ${step}`), fault);
}

/** Allows for the rounding of decimal fractions such as 0.3 / 0.1. */
const isMultiple = (value: number, step: number): boolean =>
  Math.abs(value / step - Math.round(value / step)) < 1e-9 * Math.max(1, Math.abs(value / step));

/** Counts code points, as JSON Schema does. */
const lengthOf = (text: string): number => [...text].length;

function checkText(schema: ValueSchema, value: string, validation: Validation, fault: Report): void {
  const has = (count: number, word: string) =>
    `must have at ${word} ${count} ${count === 1 ? 'character' : 'characters'}`;
  limit(schema, 'minLength', (least) => (lengthOf(value) < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxLength', (most) => (lengthOf(value) > most ? has(most, 'most') : undefined), fault);
  if (schema.format === 'secret-name' && !secretName.test(value)) fault('must be the name of a secret');
  if (typeof schema.pattern === 'string') {
    const message = patternFault(schema.pattern, value, validation);
    if (message !== undefined) fault(message);
  }
}

function patternFault(pattern: string, value: string, validation: Validation): string | undefined {
  const compiled = isPattern(pattern) ? compiledPattern(pattern) : null;
  if (compiled === null) return `cannot be checked: its pattern must be ${patternForm}`;
  validation.patternWork -= 200 + statesOf(pattern) * (value.length + 1);
  if (validation.patternWork < 0) return 'has too much text to be compared with its pattern: shorten it';
  return hasMatch(compiled, value) ? undefined : `must match the pattern ${pattern}`;
}

function checkList(schema: ValueSchema, value: Json[], path: Path, validation: Validation, fault: Report): void {
  const has = (count: number, word: string) => `must have at ${word} ${count} ${count === 1 ? 'element' : 'elements'}`;
  limit(schema, 'minItems', (least) => (value.length < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxItems', (most) => (value.length > most ? has(most, 'most') : undefined), fault);
  if (schema.uniqueItems === true && new Set(value.map(canonical)).size < value.length)
    fault('must not have equal elements');
  const { items } = schema;
  if (isMapping(items)) for (const [index, item] of value.entries()) check(items, item, [...path, index], validation);
}

function checkMapping(
  schema: ValueSchema,
  value: { [key: string]: Json },
  path: Path,
  validation: Validation,
  fault: Report,
): void {
  const { faults } = validation;
  const keys = Object.keys(value);
  const has = (count: number, word: string) => `must have at ${word} ${count} ${count === 1 ? 'key' : 'keys'}`;
  limit(schema, 'minProperties', (least) => (keys.length < least ? has(least, 'least') : undefined), fault);
  limit(schema, 'maxProperties', (most) => (keys.length > most ? has(most, 'most') : undefined), fault);
  for (const key of Array.isArray(schema.required) ? schema.required : [])
    if (!Object.hasOwn(value, String(key))) fault(`needs the key "${key}"`);
  const properties = isMapping(schema.properties) ? schema.properties : {};
  const { additionalProperties: others } = schema;
  for (const key of keys) {
    const inner = Object.hasOwn(properties, key) ? properties[key] : others;
    if (isMapping(inner)) check(inner, value[key] as Json, [...path, key], validation);
    else if (inner === false)
      faults.push({ path: [...path, key], message: unknownKey('key', key, Object.keys(properties)) });
    if (faults.length >= maximumFaults) return;
  }
}

const shown = (values: readonly Json[]): string =>
  values
    .slice(0, 20)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join(', ') + (values.length > 20 ? ', …' : '');

const isEqual = (one: Json, other: Json): boolean => canonical(one) === canonical(other);

const canonicalSets = new WeakMap<readonly Json[], ReadonlySet<string>>();

/** Returns the canonical texts of an `enum`, which is compared with each element of a list. */
function canonicalSet(values: readonly Json[]): ReadonlySet<string> {
  const known = canonicalSets.get(values) ?? new Set(values.map(canonical));
  canonicalSets.set(values, known);
  return known;
}

/** Returns a text that is the same for equal values. The order of keys does not matter. */
export const canonical = (value: Json): string =>
  JSON.stringify(value, (_, item: unknown) =>
    isMapping(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  );
