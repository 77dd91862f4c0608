import { isMapping } from '../../mapping.ts';
import type { Json } from '../document.ts';
import { compiledPattern, maximumPattern, statesOf } from '../expression/functions/patterns.ts';
import { isExtensionKey, unknownKey } from '../kinds/declared.ts';
import { quoted } from '../nearest.ts';

/** The JSON Schema keywords that parameters can have, and the forms of their values. */

export type ValueSchema = Readonly<Record<string, Json>>;

export interface ValueFault {
  /** Path in the value, or in the schema. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Path = ValueFault['path'];

/** Type names. `list` and `map` are the names that modules use for `array` and `object`. */
const types = ['string', 'integer', 'number', 'boolean', 'list', 'array', 'map', 'object', 'null'] as const;
export type Type = (typeof types)[number];

export const fitsType: Record<Type, (value: Json) => boolean> = {
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

export const typeText: Record<Type, string> = {
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

/** Maximum number of states of a pattern. Limits the time and memory that matching takes. */
const maximumStates = 5000;
export const patternForm = `a regular expression of RE2 with at most ${maximumPattern} characters, such as "^[a-z]+$"; it has no lookaround, no backreferences, and no large repetitions`;
export const isPattern = (value: Json): boolean =>
  typeof value === 'string' &&
  value.length <= maximumPattern &&
  statesOf(value) <= maximumStates &&
  compiledPattern(value) !== null;

const isCount = (value: Json): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber = fitsType.number;

const isSchema = (value: Json): boolean => typeof value === 'boolean' || isMapping(value);
const isSchemas = (value: Json): boolean => Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isKeys = (value: Json): boolean => Array.isArray(value) && value.every(fitsType.string);
const schemaForm = 'a mapping of keywords, such as { type: string }, or true or false';
const schemasForm = 'a list of mappings of keywords, such as [{ type: string }]';

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
  items: { fits: isSchema, form: schemaForm },
  prefixItems: { fits: isSchemas, form: schemasForm },
  contains: { fits: isSchema, form: schemaForm },
  minContains: { fits: isCount, form: 'a whole number from 0' },
  maxContains: { fits: isCount, form: 'a whole number from 0' },
  properties: { fits: isMapping, form: 'a mapping of keys to keywords' },
  patternProperties: {
    fits: (value) => isMapping(value) && Object.keys(value).every(isPattern),
    form: 'a mapping of regular expressions to keywords',
  },
  propertyNames: { fits: isSchema, form: schemaForm },
  dependentRequired: {
    fits: (value) => isMapping(value) && Object.values(value).every(isKeys),
    form: 'a mapping of keys to lists of keys',
  },
  dependentSchemas: { fits: isMapping, form: 'a mapping of keys to keywords' },
  required: { fits: isKeys, form: 'a list of keys' },
  additionalProperties: { fits: isSchema, form: schemaForm },
  minProperties: { fits: isCount, form: 'a whole number from 0' },
  maxProperties: { fits: isCount, form: 'a whole number from 0' },
  allOf: { fits: isSchemas, form: schemasForm },
  anyOf: { fits: isSchemas, form: schemasForm },
  oneOf: { fits: isSchemas, form: schemasForm },
  not: { fits: isSchema, form: schemaForm },
  if: { fits: isSchema, form: schemaForm },
  // biome-ignore lint/suspicious/noThenProperty: A keyword of JSON Schema. The mapping is not awaited.
  then: { fits: isSchema, form: schemaForm },
  else: { fits: isSchema, form: schemaForm },
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

/**
 * JSON Schema keywords that modules do not support, each with advice. They would require other files, or a record of
 * what other keywords accepted.
 */
const unsupported: ReadonlyMap<string, string> = new Map([
  ['$ref', 'write the referenced keywords here; use a YAML anchor and an alias to repeat them'],
  ['$dynamicRef', 'write the referenced keywords here'],
  ['$defs', 'write the keywords where they are used; use a YAML anchor and an alias to repeat them'],
  ['definitions', 'write the keywords where they are used; use a YAML anchor and an alias to repeat them'],
  ['unevaluatedProperties', 'list all keys under properties, with additionalProperties: false'],
  ['unevaluatedItems', 'describe all elements under prefixItems, with items: false'],
  ['dependencies', 'write dependentRequired or dependentSchemas'],
  ['additionalItems', 'write prefixItems, and items for the others'],
]);

/** Keywords whose values are schemas, lists of schemas, and mappings of schemas. */
const nested = {
  one: ['items', 'contains', 'additionalProperties', 'propertyNames', 'not', 'if', 'then', 'else'],
  list: ['prefixItems', 'allOf', 'anyOf', 'oneOf'],
  mapping: ['properties', 'patternProperties', 'dependentSchemas'],
} as const;

/** Returns the schemas in a keyword's value, with their paths in it. */
function schemasIn(name: string, value: Json): [path: Path, schema: Json][] {
  if ((nested.one as readonly string[]).includes(name)) return [[[], value]];
  if ((nested.list as readonly string[]).includes(name))
    return (value as Json[]).map((inner, index) => [[index], inner]);
  if (!(nested.mapping as readonly string[]).includes(name)) return [];
  return Object.entries(value as { [key: string]: Json }).map(([key, inner]) => [[key], inner]);
}

/** Returns the errors in a schema as declared. */
export function schemaFaults(schema: ValueSchema, path: Path = []): ValueFault[] {
  return Object.entries(schema).flatMap(([name, value]): ValueFault[] => {
    if (isExtensionKey(name) || value === null) return [];
    const at = [...path, name];
    const instead = unsupported.get(name);
    if (instead !== undefined)
      return [{ path: at, message: `the keyword ${quoted(name)} of JSON Schema is not supported: ${instead}` }];
    const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
    if (keyword === undefined) return [{ path: at, message: unknownKey('keyword', name, Object.keys(keywords)) }];
    if (!keyword.fits(value)) return [{ path: at, message: `must be ${keyword.form}` }];
    return schemasIn(name, value).flatMap(([inside, inner]) => {
      if (isMapping(inner)) return schemaFaults(inner, [...at, ...inside]);
      return isSchema(inner) ? [] : [{ path: [...at, ...inside], message: `must be ${schemaForm}` }];
    });
  });
}

/** Keywords that a part of a value need not satisfy, because other parts are added to it. */
const ofWholeValues: ReadonlySet<string> = new Set([
  ...['required', 'minProperties', 'minItems', 'enum', 'const', 'contains', 'minContains', 'maxContains'],
  ...['dependentRequired', 'dependentSchemas', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
]);

/**
 * Returns the schema of one layer of a parameter whose layers are merged. A layer is a part of the value.
 * @param merge with `deep`, mappings within the layer are parts too; otherwise, the layer has complete elements
 */
export function partSchema(schema: ValueSchema, merge: 'deep' | 'append' | 'unique'): ValueSchema {
  const kept = Object.entries(schema).filter(([name]) => {
    if (ofWholeValues.has(name)) return false;
    // The elements of a part have different positions in the whole list.
    if ((name === 'prefixItems' || name === 'items') && Array.isArray(schema.prefixItems)) return false;
    return !(merge === 'unique' && (name === 'uniqueItems' || name === 'maxItems'));
  });
  if (merge !== 'deep') return Object.fromEntries(kept);
  const ofMapping = (inner: Json): Json =>
    isMapping(inner) && [inner.type].flat().some((type) => type === 'map' || type === 'object')
      ? partSchema(inner, merge)
      : inner;
  return Object.fromEntries(
    kept.map(([name, value]): [string, Json] => {
      if ((name === 'properties' || name === 'patternProperties') && isMapping(value))
        return [name, Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, ofMapping(inner)]))];
      return [name, name === 'additionalProperties' ? ofMapping(value) : value];
    }),
  );
}
