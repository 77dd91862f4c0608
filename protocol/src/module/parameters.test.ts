// biome-ignore-all lint/suspicious/noThenProperty: A keyword of JSON Schema. No mapping is awaited.
import { describe, expect, test } from 'vitest';
import type { AgentFacts } from './conditions.ts';
import type { Json } from './document.ts';
import { schemaFaults, type ValueSchema } from './parameters/value-keywords.ts';
import { valueFaults } from './parameters/value-schema.ts';
import { givenFaults, givenLayers, layeredParameters } from './parameters.ts';
import { parseModule } from './parse.ts';

const faultsIn = (schema: ValueSchema, value: Json) =>
  valueFaults(schema, value).map(({ path, message }) => `${path.join('/')} ${message}`.trim());

describe('valueFaults', () => {
  test.each<[ValueSchema, Json, string[]]>([
    [{ type: 'integer', minimum: 1, maximum: 9 }, 5, []],
    [{ type: 'integer', minimum: 1 }, 0, ['must be at least 1']],
    [{ type: 'integer', maximum: 9 }, 10, ['must be at most 9']],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 1, ['must be above 1']],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 2, ['must be below 2']],
    [{ multipleOf: 0.1 }, 0.3, []],
    [{ multipleOf: 2 }, 3, ['must be a multiple of 2']],
    [{ type: 'integer' }, 1.5, ['must be a whole number, to match its type']],
    [{ type: ['string', 'null'] }, null, []],
    [{ type: ['string', 'null'] }, 1, ['must be text or null, to match its type']],
    [{ enum: ['a', { b: [1] }] }, { b: [1] }, []],
    [{ enum: ['a', 'b'] }, 'c', ['must be one of a, b']],
    [{ const: 'a' }, 'b', ['must be "a"']],
    [{ minLength: 2 }, '😀', ['must have at least 2 characters']],
    [{ maxLength: 1 }, '😀', []],
    [{ format: 'secret-name' }, 'db_password', []],
    [{ format: 'secret-name' }, 'a b', ['must be the name of a secret']],
    [{ pattern: '^[a-z]+$' }, 'abc', []],
    [{ pattern: '^[a-z]+$' }, 'a1', ['must match the pattern ^[a-z]+$']],
    [{ pattern: 'b' }, 'abc', []],
    [{ items: { pattern: '^a' } }, ['a', 'b'], ['1 must match the pattern ^a']],
    [{ pattern: '^a' }, 1, []],
    [{ minItems: 1 }, [], ['must have at least 1 element']],
    [{ maxItems: 1 }, [1, 2], ['must have at most 1 element']],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      ['must not have equal elements'],
    ],
    [{ items: { type: 'string' } }, ['a', 1], ['1 must be text, to match its type']],
    [{ required: ['name'], properties: { name: { type: 'string' } } }, {}, ['needs the key "name"']],
    [{ required: ['constructor'] }, {}, ['needs the key "constructor"']],
    [{ properties: { toString: { type: 'string' } }, additionalProperties: false }, {}, []],
    [
      { properties: { uid: {} }, additionalProperties: false },
      { uib: 1 },
      ['uib unknown key "uib": did you mean "uid"?'],
    ],
    [{ additionalProperties: { type: 'integer' } }, { a: 1, b: 'x' }, ['b must be a whole number, to match its type']],
    [{ minProperties: 1 }, {}, ['must have at least 1 key']],
    [{ maxProperties: 0 }, { a: 1 }, ['must have at most 0 keys']],
    [{ multipleOf: 4096 }, 2 ** 42 + 1, ['must be a multiple of 4096']],
    [{ multipleOf: 0.5 }, 1e10 + 0.25, ['must be a multiple of 0.5']],
    [{ allOf: [{ minimum: 1 }, { maximum: 9 }] }, 0, ['must be at least 1']],
    [{ anyOf: [{ type: 'string' }, { minimum: 5 }] }, 'x', []],
    [
      { anyOf: [{ type: 'string' }, { minimum: 5 }] },
      1,
      ['must satisfy one of the alternatives of anyOf: (1) must be text, to match its type; (2) must be at least 5'],
    ],
    [
      { items: { anyOf: [{ properties: { port: { type: 'integer' } } }] } },
      [{ port: 'x' }],
      ['0 must satisfy one of the alternatives of anyOf: (1) port must be a whole number, to match its type'],
    ],
    [{ oneOf: [{ minimum: 5 }, { maximum: 3 }] }, 1, []],
    [
      { oneOf: [{ minimum: 1 }, { maximum: 3 }] },
      2,
      ['must satisfy only one of the alternatives of oneOf, and satisfies 1 and 2'],
    ],
    [
      { oneOf: [{ minimum: 5 }, false] },
      2,
      ['must satisfy one of the alternatives of oneOf: (1) must be at least 5; (2) is not allowed here'],
    ],
    [{ not: { enum: ['root'] } }, 'ann', []],
    [{ not: { enum: ['root'] } }, 'root', ['must not be what its declaration excludes: {"enum":["root"]}']],
    [{ if: { required: ['tls'] }, then: { required: ['cert'] } }, {}, []],
    [{ if: { required: ['tls'] }, then: { required: ['cert'] } }, { tls: true }, ['needs the key "cert"']],
    [{ if: { type: 'string' }, then: { minLength: 2 }, else: { minimum: 2 } }, 1, ['must be at least 2']],
    [{ prefixItems: [{ type: 'string' }, { minimum: 1 }], items: false }, ['a', 1], []],
    [
      { prefixItems: [{ type: 'string' }], items: { type: 'integer' } },
      ['a', 'b'],
      ['1 must be a whole number, to match its type'],
    ],
    [{ prefixItems: [{}], items: false }, ['a', 'b'], ['1 is not allowed here']],
    [
      { contains: { const: 'a' } },
      ['b'],
      ['must have at least 1 element that its declaration asks for, and has 0: {"const":"a"}'],
    ],
    [{ contains: { const: 'a' }, minContains: 0 }, ['b'], []],
    [
      { contains: { const: 'a' }, maxContains: 1 },
      ['a', 'a'],
      ['must have at most 1 element that its declaration asks for, and has 2: {"const":"a"}'],
    ],
    [{ propertyNames: { pattern: '^[a-z]+$' } }, { A: 1 }, ['has the key "A", which must match the pattern ^[a-z]+$']],
    [
      { patternProperties: { '^x': { type: 'string' } }, additionalProperties: false },
      { x1: 1, y: 1 },
      ['x1 must be text, to match its type', 'y unknown key "y"'],
    ],
    [{ dependentRequired: { cert: ['key'] } }, { cert: 'a' }, ['needs the key "key", because it has "cert"']],
    [{ dependentSchemas: { a: { required: ['b'] } } }, { a: 1 }, ['needs the key "b"']],
    [{ dependentRequired: { toString: ['key'] } }, {}, []],
  ])('checks %j against %j', (schema, value, faults) => {
    expect(faultsIn(schema, value)).toEqual(faults);
  });

  test('stops matching a pattern that takes too much work', () => {
    const faults = faultsIn({ items: { pattern: '^(a?){400}$' } }, Array(1000).fill('a'.repeat(300)));
    expect(faults).toHaveLength(20);
    expect(faults[0]).toBe('6 has too much text to be compared with its pattern: shorten it');
    expect(faultsIn({ items: { pattern: '^[a-z0-9.-]+$' } }, Array(10_000).fill('web-1.example.org'))).toEqual([]);
  });

  test('refuses a value that is too large for its alternatives, even below `not` and `if`', () => {
    const alternatives = Array.from({ length: 400 }, (_, index) => ({ const: `v${index}` }));
    const value = Array(5000).fill('v399');
    const tooLarge = ['is too large to be compared with all alternatives of its declaration: shorten it'];
    expect(faultsIn({ items: { anyOf: alternatives } }, value).at(-1)).toContain('too large to be compared');
    expect(faultsIn({ not: { items: { anyOf: alternatives } } }, value)).toEqual(tooLarge);
    expect(faultsIn({ if: { items: { anyOf: alternatives } }, then: false }, value)).toEqual(tooLarge);
    const long = Array(300).fill('x'.repeat(100_000));
    expect(faultsIn({ not: { items: { anyOf: alternatives } } }, long)).toEqual(tooLarge);
  });

  test('reports at most 20 errors', () => {
    expect(faultsIn({ items: { type: 'string' } }, Array(100).fill(1))).toHaveLength(20);
  });
});

test.each(['(?=a)', '(a)\\1', '(a{100}){100}', 'a'.repeat(501), '['])('refuses the pattern %s', (pattern) => {
  expect(schemaFaults({ pattern })).toHaveLength(1);
});

test('refuses keywords that do not exist, and values that a keyword does not accept', () => {
  const faults = schemaFaults({
    minimum: '1',
    items: { typ: 'string' },
    properties: { a: { minItems: -1 }, b: 1 },
    additionalProperties: { pattern: '(' },
    $ref: 'https://example.com',
    anyOf: [{ typ: 'string' }, 1],
    oneOf: [],
    not: { $defs: {} },
    if: { unevaluatedProperties: false },
    patternProperties: { '(': {} },
    dependentSchemas: { a: 1 },
  });
  expect(faults.map(({ path, message }) => `${path.join('/')} ${message}`)).toEqual([
    'minimum must be a number',
    'items/typ unknown keyword "typ": did you mean "type"?',
    'properties/a/minItems must be a whole number from 0',
    'properties/b must be a mapping of keywords, such as { type: string }, or true or false',
    expect.stringMatching(/^additionalProperties\/pattern must be a regular expression of RE2/),
    expect.stringMatching(/^\$ref the keyword "\$ref" of JSON Schema is not supported: write/),
    'anyOf must be a list of mappings of keywords, such as [{ type: string }]',
    'oneOf must be a list of mappings of keywords, such as [{ type: string }]',
    expect.stringMatching(/^not\/\$defs the keyword "\$defs" of JSON Schema is not supported/),
    expect.stringMatching(/^if\/unevaluatedProperties .* not supported: list all keys under properties/),
    'patternProperties must be a mapping of regular expressions to keywords',
    'dependentSchemas/a must be a mapping of keywords, such as { type: string }, or true or false',
  ]);
});

const source = (parameters: string) =>
  `name: m\nsupports: [{ platform: linux }]\nparameters:\n${parameters
    .split('\n')
    .map((line) => `  ${line}\n`)
    .join('')}`;

const parameterFaultsOf = (parameters: string) => {
  const parsed = parseModule(source(parameters));
  return parsed.ok ? [] : parsed.faults.map(({ line, path, message }) => `${line} ${path} ${message}`);
};

describe('parameters of modules', () => {
  test.each([
    ['port: { type: integer, minimum: 1, default: 0 }', '4 /parameters/port/default must be at least 1'],
    [
      'port: { type: integer, minimun: 1 }',
      '4 /parameters/port/minimun unknown field "minimun": did you mean "minimum"?',
    ],
    ['port: { type: integer, minimum: one }', '4 /parameters/port/minimum must be a number'],
    [
      'users: { type: list, items: { type: map, required: [name] }, default: [{ nam: a }] }',
      '4 /parameters/users/default/0 needs the key "name"',
    ],
    [
      'pkg: { type: string, variants: [{ when: { distro: debian }, value: 3 }] }',
      '4 /parameters/pkg/variants/0/value must be text, to match its type',
    ],
    [
      'pkg: { type: string, variants: [{ when: { distro: debian } }] }',
      '4 /parameters/pkg/variants/0/value "value" is required',
    ],
  ])('refuses %s', (parameters, fault) => {
    expect(parameterFaultsOf(parameters)).toEqual([fault]);
  });

  const agent = (distro: string): AgentFacts => ({
    name: 'a',
    node_id: '1',
    attributes: { distro, arch: 'x' },
    tags: {},
  });
  const declared = (parameters: string) => {
    const parsed = parseModule(source(parameters));
    if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join());
    return parsed.module.parameters;
  };

  test('uses the value of the matching variant unless an assignment sets one', () => {
    const of = declared(
      'service: { type: string, default: sshd, variants: [{ when: { distro: debian }, value: ssh }] }',
    );
    expect(layeredParameters(of, givenLayers({}), agent('debian')).values.get('service')).toBe('ssh');
    expect(layeredParameters(of, givenLayers({}), agent('fedora')).values.get('service')).toBe('sshd');
    expect(layeredParameters(of, givenLayers({ service: 'dropbear' }), agent('debian')).values.get('service')).toBe(
      'dropbear',
    );
  });

  test('reports an error if several variants tie and no assignment sets the value', () => {
    const of = declared(
      'a: { type: string, variants: [{ when: { distro: d }, value: x }, { when: { attr.arch: x }, value: y }] }',
    );
    expect(layeredParameters(of, givenLayers({}), agent('d')).faults.map(({ message }) => message)).toEqual([
      'parameter a: these variants match the agent with the same number of keys: distro=d | arch=x; add a key to one of them',
    ]);
    expect(layeredParameters(of, givenLayers({ a: 'z' }), agent('d')).faults).toEqual([]);
  });

  test('names the path of an error in a value', () => {
    const of = declared('users: { type: list, items: { type: map, properties: { uid: { type: integer } } } }');
    expect(givenFaults(of, { users: [{ uid: 1 }, { uid: 'x' }] })).toEqual([
      {
        name: 'users',
        path: ['users', 1, 'uid'],
        message: 'parameter users[1].uid: must be a whole number, to match its type',
      },
    ]);
  });
});
