import { expect, test } from 'vitest';
import type { Json } from '../document.ts';
import { schemaFaults, type ValueSchema } from './value-keywords.ts';
import { valueFaults } from './value-schema.ts';

const isValid = (schema: ValueSchema, value: Json): boolean => {
  expect(schemaFaults(schema)).toEqual([]);
  return valueFaults(schema, value).length === 0;
};

/** Corner cases of draft 2020-12, in which validators often differ. */
test.each<[schema: ValueSchema, valid: readonly Json[], invalid: readonly Json[]]>([
  [{ type: 'integer' }, [1, 1.0, -0], [1.5, '1', true, null, []]],
  [{ type: ['null', 'object'] }, [null, {}], [[], 0]],
  [{ enum: [0, [false], { a: 1, b: [2] }] }, [0, -0, [false], { b: [2], a: 1 }], [false, [0], { a: 1 }, null]],
  [{ const: { constructor: 1 } }, [{ constructor: 1 }], [{}, { constructor: '1' }]],
  [{ minLength: 2, maxLength: 2 }, ['ab', '😀é', 12, [1]], ['a', '😀', 'abc']],
  [{ pattern: 'b+' }, ['abbc', 7], ['ac']],
  [{ multipleOf: 0.01 }, [0.07, 19.99, 'x'], [0.075, 19.995]],
  [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, '0'], [0.9, 3]],
  [
    { uniqueItems: true },
    [[1, true], ['1', 1], [{ a: 1 }, { a: 2 }], [[1], [true]], {}],
    [
      [1, 1.0],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [[null], [null]],
    ],
  ],
  [{ prefixItems: [{ type: 'string' }], items: false }, [[], ['a'], 3], [[1], ['a', 'b']]],
  [{ prefixItems: [true], contains: { const: 1 } }, [[1], ['a', 1]], [[], ['a']]],
  [{ contains: { const: 1 }, minContains: 0 }, [[], [2]], []],
  [
    { contains: { const: 1 }, minContains: 2, maxContains: 3 },
    [
      [1, 1],
      [1, 1, 1, 2],
    ],
    [[1], [1, 1, 1, 1]],
  ],
  [{ minContains: 2, maxContains: 1 }, [[], [1]], []],
  [{ required: ['toString', '__proto__'] }, [JSON.parse('{"toString": 1, "__proto__": 2}')], [{}, { toString: 1 }]],
  [
    { properties: { constructor: { type: 'string' } }, patternProperties: { '^x': true }, additionalProperties: false },
    [{}, { constructor: 'a', xy: 1 }],
    [{ constructor: 1 }, { y: 1 }],
  ],
  [{ propertyNames: { maxLength: 2 } }, [{}, { ab: 1 }, 'abc'], [{ abc: 1 }]],
  [{ dependentRequired: { a: ['b'] } }, [{}, { b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
  [{ dependentSchemas: { a: { minProperties: 2 }, b: false } }, [{}, { a: 1, c: 1 }], [{ a: 1 }, { b: 1 }]],
  [{ oneOf: [{ type: 'integer' }, { minimum: 2 }] }, [1, 2.5, 'x'], [3, 1.5]],
  [{ not: { anyOf: [{ type: 'null' }, { const: 1 }] } }, [2, ''], [null, 1]],
  // biome-ignore lint/suspicious/noThenProperty: A keyword of JSON Schema. The mapping is not awaited.
  [{ if: { type: 'string' }, then: { minLength: 1 }, else: { minimum: 1 } }, ['a', 1, []], ['', 0]],
  // biome-ignore lint/suspicious/noThenProperty: as above
  [{ then: false, else: false }, [1, null], []],
])('validates by %j as JSON Schema does', (schema, valid, invalid) => {
  expect(valid.filter((value) => !isValid(schema, value))).toEqual([]);
  expect(invalid.filter((value) => isValid(schema, value))).toEqual([]);
});

test('differs from JSON Schema where decision 99 says so', () => {
  // A keyword without a value is absent, as in YAML.
  expect(isValid({ const: null }, 1)).toBe(true);
  // Expressions cannot represent a larger whole number exactly.
  expect(isValid({ type: 'integer' }, 2 ** 53)).toBe(false);
  // Patterns are those of RE2, and white space is ASCII.
  expect(isValid({ pattern: '^\\s$' }, '\u00a0')).toBe(false);
  for (const refused of [
    { $ref: '#' },
    { $defs: {} },
    { unevaluatedItems: false },
    { format: 'email' },
    { unknown: 1 },
  ])
    expect(schemaFaults(refused)).toHaveLength(1);
  for (const pattern of ['(?=a)', '(a)\\1']) expect(schemaFaults({ pattern })).toHaveLength(1);
});
