import { describe, expect, test } from 'vitest';
import type { DeclaredParameter } from '../../editor/outline.ts';
import { fieldKey, fieldsOf, readParameters, readValue, textOf, textsOf } from './parameters.ts';

const declared = (name: string, type: string, fallback?: unknown): DeclaredParameter => ({
  ...{ name, type, description: null, default: fallback },
});
const web = new Map([
  ['web', [declared('port', 'integer', 80), declared('host', 'string'), declared('users', 'list', ['a'])]],
]);

describe('the fields', () => {
  test('are what the modules declare, in their order', () =>
    expect(fieldsOf(['web'], web, {}).map(({ name, type, fallback }) => [name, type, fallback])).toEqual([
      ['port', 'integer', '80'],
      ['host', 'string', null],
      ['users', 'list', '- a'],
    ]));
  test('and what is set that nobody declares any more', () =>
    expect(fieldsOf(['web'], web, { web: { old: 1 }, gone: { x: 2 } }).slice(3)).toMatchObject([
      { module: 'web', name: 'old', type: 'unknown' },
      { module: 'gone', name: 'x', type: 'unknown' },
    ]));
});

describe('a value is read as its type says', () => {
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
  ] as const)('%s %j', (type, text, value) => expect(readValue(type, text)).toEqual({ value }));

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
  ] as const)('%s %j is refused', (type, text) => expect(readValue(type, text)).toHaveProperty('fault'));

  test.each(['', 'a b', '"quoted"', 80, false, ['a', 'b'], { a: [1] }])('%j comes back as it was', (value) => {
    const type = Array.isArray(value) ? 'list' : typeof value === 'object' ? 'map' : typeof value;
    expect(readValue(type as 'string', textOf(value))).toEqual({ value });
  });
});

test.each(['list', 'map'] as const)('a %s of brackets without end is at fault, and breaks nothing', (type) =>
  expect(readValue(type, '['.repeat(20_000))).toHaveProperty('fault'),
);

describe('the form as a whole', () => {
  const fields = fieldsOf(['web'], web, {});
  const host = fieldKey('web', 'host');
  test('what is empty leaves the default', () =>
    expect(readParameters(fields, { [host]: 'example.org' })).toEqual({
      parameters: { web: { host: 'example.org' } },
    }));
  test('what has none must be set', () => expect(readParameters(fields, {})).toHaveProperty(['faults', host]));
  test('each fault stands at its field', () =>
    expect(readParameters(fields, { [host]: 'x', [fieldKey('web', 'port')]: 'high' })).toEqual({
      faults: { [fieldKey('web', 'port')]: 'Write a whole number.' },
    }));
  test('values that are set come back as they were', () => {
    const given = { web: { port: 8080, host: 'h', users: ['b'] } };
    expect(readParameters(fieldsOf(['web'], web, given), textsOf(given))).toEqual({ parameters: given });
  });
  test('a parameter called like what every object has', () => {
    const odd = new Map([['constructor', [declared('toString', 'string')]]]);
    const key = fieldKey('constructor', 'toString');
    expect(readParameters(fieldsOf(['constructor'], odd, {}), { [key]: 'x' })).toEqual({
      parameters: { constructor: { toString: 'x' } },
    });
  });
});
