/** Describes the JSON Schemas in docs/openapi.json in words, for the tables in docs/api.md. */

export interface JsonSchema {
  $ref?: string;
  type?: string | string[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  default?: unknown;
}

/** A field of an object or of a nested object, such as `results[].status`. */
export interface FieldRow {
  readonly path: string;
  readonly required: boolean;
  readonly type: string;
  readonly description: string;
}

const componentPrefix = '#/components/schemas/';

/** Returns the name of the schema that a schema references; null for an inline schema and for arbitrary JSON. */
export function shapeOf({ $ref }: JsonSchema): string | null {
  const name = $ref?.replace(componentPrefix, '');
  return name === undefined || name.startsWith('__') ? null : name;
}

const isNull = ({ type }: JsonSchema): boolean => type === 'null';
const alternatives = (schema: JsonSchema): JsonSchema[] => schema.anyOf ?? schema.oneOf ?? [];

function numbers(low: number | undefined, high: number | undefined): string {
  const from = low === undefined || low <= Number.MIN_SAFE_INTEGER ? null : low;
  const to = high === undefined || high >= Number.MAX_SAFE_INTEGER ? null : high;
  if (from !== null && to !== null) return `, ${from} to ${to}`;
  if (from !== null) return `, from ${from}`;
  return to === null ? '' : `, up to ${to}`;
}

const counted = (low: number | undefined, high: number | undefined, what: string): string => {
  const range = numbers(low === 0 ? undefined : low, high);
  return range === '' ? '' : `${range} ${what}`;
};

/** Returns a short description of the allowed values. */
export function typeText(schema: JsonSchema): string {
  if (schema.$ref !== undefined) {
    const name = shapeOf(schema);
    return name === null ? 'any JSON' : `[${name}](#${name.toLowerCase()}-object)`;
  }
  const choices = alternatives(schema);
  if (choices.length > 0) return choices.map(typeText).join(' or ');
  if (schema.allOf) return schema.allOf.map(typeText).join(' and ');
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeText({ ...schema, type, description: '' })).join(' or ');
  if (schema.type === 'null') return 'null';
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  switch (schema.type) {
    case 'string':
      return `text${counted(schema.minLength, schema.maxLength, 'characters')}${schema.format ? ` (${schema.format})` : ''}${
        schema.pattern ? `, like \`${schema.pattern}\`` : ''
      }`;
    case 'integer':
      return `integer${numbers(schema.minimum, schema.maximum)}`;
    case 'number':
      return `number${numbers(schema.minimum, schema.maximum)}`;
    case 'boolean':
      return '`true`, `false`';
    case 'array':
      return `list of ${typeText(schema.items ?? {})}${counted(schema.minItems, schema.maxItems, 'of them')}`;
    case 'object':
      return typeof schema.additionalProperties === 'object'
        ? `map of text to ${typeText(schema.additionalProperties)}`
        : 'object';
    default:
      return 'any JSON';
  }
}

/**
 * Returns the object that a schema describes or contains, with its path: `[]` for the items of a list. Null if there is
 * no object.
 */
function objectIn(schema: JsonSchema): { object: JsonSchema; by: string } | null {
  if (schema.properties) return { object: schema, by: '' };
  if (schema.items) {
    const inner = objectIn(schema.items);
    return inner && { object: inner.object, by: `[]${inner.by}` };
  }
  if (typeof schema.additionalProperties === 'object') {
    const inner = objectIn(schema.additionalProperties);
    return inner && { object: inner.object, by: `.*${inner.by}` };
  }
  const choices = alternatives(schema).filter((choice) => !isNull(choice));
  return choices.length === 1 ? objectIn(choices[0] as JsonSchema) : null;
}

/** Returns every field of the object that a schema describes or contains. Does not expand named objects. */
export function fieldsOf(schema: JsonSchema, prefix = ''): FieldRow[] {
  const choices = alternatives(schema).filter((choice) => !isNull(choice));
  if (choices.length > 1) return choices.flatMap((choice) => fieldsOf(choice, prefix));
  const found = objectIn(schema);
  if (!found) return [];
  const { object, by } = found;
  const parent = `${prefix}${by}`;
  return Object.entries(object.properties ?? {}).flatMap(([name, field]) => {
    const path = parent === '' ? name : `${parent}.${name}`.replace(/^\./, '');
    const row: FieldRow = {
      path,
      required: object.required?.includes(name) ?? false,
      type: typeText(field),
      description: field.description ?? '',
    };
    return [row, ...fieldsOf(field, path)];
  });
}
