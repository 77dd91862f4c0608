import { expect, test } from 'vitest';
import type { DeclaredParameter } from '../../editor/outline.ts';
import { fieldKey, fieldsOf, readParameters, readValue, textOf, textsOf } from './parameters.ts';

const declared = (name: string, type: string, fallback?: unknown): DeclaredParameter => ({
  ...{ name, type, description: null, keys: [], default: fallback },
});
const web = new Map([
  ['web', [declared('port', 'integer', 80), declared('host', 'string'), declared('users', 'list', ['a'])]],
]);

test('lists declared parameters in module order', () =>
  expect(fieldsOf(['web'], web, {}).map(({ name, type, fallback }) => [name, type, fallback])).toEqual([
    ['port', 'integer', '80'],
    ['host', 'string', null],
    ['users', 'list', '- a'],
  ]));
test('lists values of undeclared parameters last', () =>
  expect(fieldsOf(['web'], web, { web: { old: 1 }, gone: { x: 2 } }).slice(3)).toMatchObject([
    { module: 'web', name: 'old', type: 'unknown' },
    { module: 'gone', name: 'x', type: 'unknown' },
  ]));

test.each([
  ['string', 'a b', 'a b'],
  ['string', '80', '80'],
  ['string', '""', ''],
  ['string', '"a: \\"b\\""', 'a: "b"'],
  ['integer', ' -3 ', -3],
  ['number', '1.5e3', 1500],
  ['number', '.5', 0.5],
  ['boolean', 'false', false],
  ['list', '- a\n- 2', ['a', 2]],
  ['list', '[a, b]', ['a', 'b']],
  ['map', 'a: 1\nb: [x]', { a: 1, b: ['x'] }],
] as const)('reads a value of type %s from %j', (type, text, value) =>
  expect(readValue(type, text)).toEqual({ value }),
);

test.each([
  ['integer', '1.5'],
  ['integer', '99999999999999999'],
  ['integer', '0x10'],
  ['number', 'NaN'],
  ['number', '1e999'],
  ['boolean', 'yes'],
  ['list', 'a: b'],
  ['list', '[a'],
  ['map', '- a'],
  ['map', 'a: &x [1]\nb: *x'],
  ['string', '"open'],
  ['unknown', 'x'],
] as const)('refuses a value of type %s: %j', (type, text) => expect(readValue(type, text)).toHaveProperty('fault'));

test.each(['', 'a b', '"quoted"', 80, false, ['a', 'b'], { a: [1] }])(
  'formats %j so that it is read back unchanged',
  (value) => {
    const type = Array.isArray(value) ? 'list' : typeof value === 'object' ? 'map' : typeof value;
    expect(readValue(type as 'string', textOf(value))).toEqual({ value });
  },
);

test.each(['list', 'map'] as const)('refuses a %s of 20,000 nested brackets', (type) =>
  expect(readValue(type, '['.repeat(20_000))).toHaveProperty('fault'),
);

const fields = fieldsOf(['web'], web, {});
const host = fieldKey('web', 'host');
test('uses the default for an empty field', () =>
  expect(readParameters(fields, { [host]: 'example.org' })).toEqual({
    parameters: { web: { host: 'example.org' } },
  }));
test('requires a value for a parameter without a default', () =>
  expect(readParameters(fields, {})).toHaveProperty(['faults', host]));
test('does not require a value that another assignment sets', () =>
  expect(readParameters(fields, {}, (key) => key === host)).toEqual({ parameters: {} }));
test('reports invalid parameters by field', () =>
  expect(readParameters(fields, { [host]: 'x', [fieldKey('web', 'port')]: 'high' })).toEqual({
    faults: { [fieldKey('web', 'port')]: 'Enter a whole number.' },
  }));
test('reads stored parameters back unchanged', () => {
  const given = { web: { port: 8080, host: 'h', users: ['b'] } };
  expect(readParameters(fieldsOf(['web'], web, given), textsOf(given))).toEqual({ parameters: given });
});
test('accepts a parameter named like a property of Object', () => {
  const odd = new Map([['constructor', [declared('toString', 'string')]]]);
  const key = fieldKey('constructor', 'toString');
  expect(readParameters(fieldsOf(['constructor'], odd, {}), { [key]: 'x' })).toEqual({
    parameters: { constructor: { toString: 'x' } },
  });
});
