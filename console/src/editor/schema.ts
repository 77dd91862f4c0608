import type { Step } from './yaml-position.ts';

/** The subset of JSON Schema that code completion uses. */

export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  /** Functions for expressions, in the schema's top-level object. */
  readonly 'x-functions'?: readonly { readonly name: string; readonly form: string; readonly about: string }[];
}

/** Returns the alternatives of a schema, without the null type of optional values. */
function alternatives(schema: JsonSchema): readonly JsonSchema[] {
  if (schema.anyOf === undefined) return schema.type === 'null' ? [] : [schema];
  const { anyOf, ...rest } = schema;
  return anyOf.flatMap(alternatives).map((one) => ({ ...rest, ...one }));
}

/** Reads only own properties, because a document may have a key named `constructor`. */
const own = <V>(values: Readonly<Record<string, V>> | undefined, key: string): V | undefined =>
  values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;

function below(schema: JsonSchema, step: Step): readonly JsonSchema[] {
  return alternatives(schema).flatMap((one) => {
    if (typeof step === 'number') return one.items === undefined ? [] : [one.items];
    const named = own(one.properties, step);
    if (named !== undefined) return [named];
    const patterned = Object.entries(one.patternProperties ?? {}).find(([pattern]) =>
      new RegExp(pattern, 'u').test(step),
    );
    if (patterned !== undefined) return [patterned[1]];
    return typeof one.additionalProperties === 'object' ? [one.additionalProperties] : [];
  });
}

/** Returns the possible schemas of the value at a path, or an empty list if the schema has no such path. */
export function schemasAt(root: JsonSchema, path: readonly Step[]): readonly JsonSchema[] {
  let found: readonly JsonSchema[] = [root];
  for (const step of path) found = found.flatMap((schema) => below(schema, step));
  return found.flatMap(alternatives);
}

export interface SchemaKey {
  readonly name: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
}

/** Returns the keys that a mapping may have. */
export const keysOf = (schemas: readonly JsonSchema[]): SchemaKey[] =>
  schemas.flatMap(({ properties, required }) =>
    Object.entries(properties ?? {}).map(([name, schema]) => ({
      name,
      schema,
      required: required?.includes(name) ?? false,
    })),
  );

/** Returns the possible values for enumerations and booleans. */
export const valuesOf = (schemas: readonly JsonSchema[]): string[] => [
  ...new Set(
    schemas.flatMap((schema) =>
      schema.type === 'boolean' ? ['true', 'false'] : (schema.enum ?? []).filter((value) => typeof value === 'string'),
    ),
  ),
];

const isExpressionOnly = ({ type, description }: JsonSchema): boolean =>
  type === 'string' && description?.startsWith('One expression') === true;

/** Returns the form of a value. Disregards that an expression may be written in its place. */
export const formOf = (schema: JsonSchema): 'mapping' | 'list' | 'scalar' => {
  const form = alternatives(schema).find((one) => !isExpressionOnly(one))?.type;
  return form === 'object' ? 'mapping' : form === 'array' ? 'list' : 'scalar';
};

/** Describes the type of a value in one or two words: `boolean`, `linux | windows | macos`. */
export function typeText(schema: JsonSchema): string {
  const words = alternatives(schema)
    .filter((one) => !isExpressionOnly(one))
    .flatMap((one) => {
      if (one.enum !== undefined) return [one.enum.join(' | ')];
      if (one.type === 'object') return ['mapping'];
      if (one.type === 'array') return ['list'];
      return one.type === undefined || one.type === 'string' ? [] : [one.type];
    });
  return [...new Set(words)].join(' or ') || 'text';
}

export const descriptionOf = (schema: JsonSchema): string =>
  schema.description ??
  alternatives(schema).find((one) => one.description && !isExpressionOnly(one))?.description ??
  '';
