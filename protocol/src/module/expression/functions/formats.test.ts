import { describe, expect, test } from 'vitest';
import type { Json } from '../../document.ts';
import { evaluateText } from '../evaluate.ts';
import { Meter } from '../meter.ts';
import type { Evaluated } from '../text-writer.ts';
import type { Scope } from '../variables.ts';

const scopeOf = (value: Json): Scope => ({
  agent: { name: 'web-1', node_id: 'a', attributes: {}, tags: {} },
  parameters: new Map([['p', value]]),
  each: undefined,
  index: undefined,
  meter: new Meter(),
});
const evaluated = (name: 'toml' | 'ini', value: Json): Evaluated =>
  evaluateText(`\${{ ${name}(param.p) }}`, scopeOf(value));
const lines = (...written: string[]) => ({ kind: 'value', value: written.map((line) => `${line}\n`).join('') });

describe('toml', () => {
  test('writes values before tables, and quotes keys and texts', () => {
    const value = {
      server: { host: 'a"b\\c\n\u0007\u007f', 'a.b': { deep: true } },
      port: 80,
      ratio: 1.5,
      list: ['x', 1, { k: 'v' }, []],
      users: [{ name: 'ann' }, { name: 'eve', keys: { ssh: 'x' } }],
      empty: {},
      'key with "': 1,
    };
    expect(evaluated('toml', value)).toEqual(
      lines(
        'port = 80',
        'ratio = 1.5',
        'list = ["x", 1, { k = "v" }, []]',
        '"key with \\"" = 1',
        '',
        '[server]',
        'host = "a\\"b\\\\c\\n\\u0007\\u007f"',
        '',
        '[server."a.b"]',
        'deep = true',
        '',
        '[[users]]',
        'name = "ann"',
        '',
        '[[users]]',
        'name = "eve"',
        '',
        '[users.keys]',
        'ssh = "x"',
        '',
        '[empty]',
      ),
    );
    expect(evaluated('toml', { a: { b: 1 } })).toEqual(lines('[a]', 'b = 1'));
    expect(evaluated('toml', {})).toEqual(lines());
  });

  test('refuses values that TOML cannot contain', () => {
    expect(evaluated('toml', { a: [null] })).toEqual({
      kind: 'fault',
      message: 'TOML has no null: leave the key out with | omit',
    });
    expect(evaluated('toml', ['a'])).toEqual({ kind: 'fault', message: 'toml takes a map of names to values' });
  });
});

describe('ini', () => {
  test('writes values before sections', () => {
    expect(evaluated('ini', { main: { a: 'x y', on: true, none: '' }, global: 1, 'b c': {} })).toEqual(
      lines('global = 1', '', '[main]', 'a = x y', 'on = true', 'none =', '', '[b c]'),
    );
  });

  test.each<[string, Json]>([
    ['a list', { s: { a: ['x'] } }],
    ['a map in a section', { s: { a: {} } }],
    ['null', { a: null }],
    ['a line break in a value', { s: { a: 'x\n[other]' } }],
    ['a line break in a key', { s: { 'a\nb': 1 } }],
    ['a key that is a comment', { s: { '#a': 1 } }],
    ['a key with an equals sign', { s: { 'a=b': 1 } }],
    ['a section that ends early', { 'a]\n[b': {} }],
    ['an empty name', { '': 1 }],
  ])('refuses %s', (_, value) => {
    expect(evaluated('ini', value)).toEqual({ kind: 'fault', message: expect.stringMatching(/^ini: /) });
  });
});

test.each(['toml', 'ini'] as const)('%s charges steps for the text that it writes', (name) => {
  const spent = (length: number) => {
    const scope = scopeOf({ a: 'x'.repeat(length) });
    let steps = 0;
    const { spend } = scope.meter;
    scope.meter.spend = function (count) {
      steps += count;
      spend.call(this, count);
    };
    expect(evaluateText(`\${{ ${name}(param.p) }}`, scope).kind).toBe('value');
    return steps;
  };
  expect(spent(32_000) - spent(0)).toBeGreaterThanOrEqual(32_000 / 16);
});
