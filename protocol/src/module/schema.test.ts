import { describe, expect, test } from 'vitest';
import { resourceTypes } from './kinds.ts';
import { moduleJsonSchema } from './schema.ts';

interface Schema {
  [key: string]: unknown;
  properties: Record<string, Schema>;
  anyOf: Schema[];
  items: Schema;
}

/** Returns the schema for a nullable field. */
const optional = (schema: Schema | undefined): Schema => {
  expect(schema?.anyOf[1]).toEqual({ type: 'null' });
  return schema?.anyOf[0] as Schema;
};

describe('moduleJsonSchema', () => {
  const schema = moduleJsonSchema() as Schema;
  const resource = optional(schema.properties.resources).items;
  const bodies = optional(resource.properties.resource);

  test('the JSON Schema for modules contains its ID and draft', () => {
    expect(schema).toMatchObject({
      $id: '/schemas/module/v1.json',
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      required: ['name'],
    });
  });

  test('the JSON Schema for modules contains every kind', () => {
    expect(Object.keys(bodies.properties).sort()).toEqual([...resourceTypes].sort());
    expect(bodies.oneOf).toHaveLength(resourceTypes.length);
    expect(optional(bodies.properties['file-unix']).required).toEqual(['path']);
  });

  test('the JSON Schema for modules contains patterns for formatted values', () => {
    const user = optional(bodies.properties['user-unix']);
    expect(optional(user.properties.uid).anyOf[0]).toMatchObject({
      type: 'integer',
      minimum: 0,
      maximum: 4_294_967_294,
    });
    const file = optional(bodies.properties['file-unix']);
    expect(new RegExp(optional(file.properties.mode).pattern as string).test('0644')).toBe(true);
    expect(new RegExp(optional(file.properties.mode).pattern as string).test('x')).toBe(false);
    expect(new RegExp(optional(file.properties.mode).pattern as string).test('${{ tag.x }}')).toBe(true);
  });

  test('the JSON Schema for modules refuses unknown keys at every level, except x- keys', () => {
    let closed = 0;
    const walk = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const { properties, additionalProperties, patternProperties, type } = value as Schema;
      if (type === 'object' && properties !== undefined) {
        closed += 1;
        expect(additionalProperties).toBe(false);
        expect(patternProperties).toHaveProperty(['^x-']);
      }
      for (const inner of Object.values(value)) walk(inner);
    };
    walk(schema);
    expect(closed).toBeGreaterThan(resourceTypes.length * 2);
  });

  test('the JSON Schema for modules describes the functions of expressions', () => {
    const functions = schema['x-functions'] as { name: string }[];
    expect(functions).toContainEqual({ name: 'basename', form: 'basename(path)', about: 'The last part of a path.' });
    expect(functions).toContainEqual(expect.objectContaining({ name: 'startsWith', form: 'text.startsWith(part)' }));
    // Functions that have the same name in CEL and Muster.
    expect(functions.length - new Set(functions.map(({ name }) => name)).size).toBe(0);
  });

  test('the JSON Schema for modules allows tags in clauses', () => {
    expect(optional(schema.properties.supports).items.patternProperties).toHaveProperty(['^tag\\.']);
  });
});
