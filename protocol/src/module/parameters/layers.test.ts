import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Json, Merge } from '../document.ts';
import { givenFaults, layeredParameters } from '../parameters.ts';
import { parseModule } from '../parse.ts';
import { combine, conflictText, type Layer } from './layers.ts';

const layer = (name: string, value: Json, precedence = 0): Layer => ({ value, from: 'assignment', name, precedence });
const ownDefault = (value: Json): Layer => ({ value, from: 'default', name: null, precedence: null });
const merged = (merge: Merge, ...layers: Layer[]) => combine(merge, layers).value;
const names = (layers: readonly Layer[]) => layers.map(({ name, from }) => name ?? from);

describe('combine', () => {
  test('uses only the highest layer by default', () => {
    const found = combine('replace', [ownDefault(1), layer('a', 2, 5), layer('b', 3), layer('c', 2, 5)]);
    expect(found).toMatchObject({ value: 2, conflict: null });
    expect(names(found.layers)).toEqual(['c', 'a']);
    expect(names(found.overrode)).toEqual(['b', 'default']);
  });

  test('compares values regardless of the order of their keys', () => {
    expect(combine('replace', [layer('a', { x: 1, y: 2 }), layer('b', { y: 2, x: 1 })]).conflict).toBeNull();
  });

  test('appends lists from low to high', () => {
    const found = combine('append', [layer('high', ['c', 'a'], 1), ownDefault(['a']), layer('low', ['b'])]);
    expect(found.value).toEqual(['a', 'b', 'c', 'a']);
    expect(names(found.layers)).toEqual(['high', 'low', 'default']);
    expect(names(found.giversOf([1]))).toEqual(['low']);
  });

  test('appends layers of equal precedence in order, without reporting a conflict', () => {
    expect(combine('append', [layer('a', [1]), layer('b', [2])])).toMatchObject({ value: [1, 2], conflict: null });
  });

  test('keeps the first of equal elements', () => {
    const found = combine('unique', [
      layer('a', [{ x: 1, y: 2 }, 1]),
      layer('b', [1, { y: 2, x: 1 }], 1),
      layer('c', [1], 2),
    ]);
    expect(found.value).toEqual([{ x: 1, y: 2 }, 1]);
    expect(names(found.overrode)).toEqual(['c', 'b']);
  });

  test('merges mappings key by key, and replaces everything else', () => {
    expect(
      merged(
        'deep',
        ownDefault({ a: { x: 1, l: [1] }, b: 1 }),
        layer('m', { a: { y: 2, l: [2] } }),
        layer('n', { b: { z: 1 } }, 1),
      ),
    ).toEqual({ a: { x: 1, y: 2, l: [2] }, b: { z: 1 } });
  });

  test('removes a key that a higher layer sets to null', () => {
    expect(merged('deep', ownDefault({ a: 1, b: { c: 1, d: 1 } }), layer('m', { a: null, b: { c: null } }))).toEqual({
      b: { d: 1 },
    });
    expect(merged('deep', layer('m', { a: null }), layer('n', { a: 2 }, 1))).toEqual({ a: 2 });
  });

  test('reports different values of a key in layers of equal precedence unless a higher layer sets it', () => {
    const low = [layer('a', { x: { y: 1 }, z: 1 }), layer('b', { x: { y: 2 } })];
    const { conflict } = combine('deep', low);
    expect(conflict === null ? '' : conflictText('m', 'p', conflict)).toBe(
      'assignments a and b set the parameter p.x.y of module m to different values; give one of them a higher precedence',
    );
    expect(combine('deep', [...low, layer('c', { x: { y: 3 } }, 1)])).toMatchObject({
      value: { x: { y: 3 }, z: 1 },
      conflict: null,
    });
    for (const [one, other] of [
      [{ x: 1 }, { x: { y: 1 } }],
      [{ x: { y: 1 } }, { x: null }],
    ] as const)
      expect(combine('deep', [layer('a', one), layer('b', other)]).conflict).toMatchObject({ path: ['x'] });
    expect(combine('deep', [layer('a', { x: 1 }), layer('b', { y: 1 })]).conflict).toBeNull();
  });

  test('names the layers of each part, and the layers that contribute nothing', () => {
    const found = combine('deep', [layer('a', { x: 1, y: 1 }), layer('b', { x: 2 }, 1), layer('c', { x: 3 }, 2)]);
    expect(names(found.giversOf(['x']))).toEqual(['c']);
    expect(names(found.giversOf(['missing']))).toEqual(['c', 'a']);
    expect(names(found.overrode)).toEqual(['b']);
  });

  test('does not change prototypes', () => {
    const hostile = JSON.parse(
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
    ) as Json;
    const value = merged('deep', layer('a', {}), layer('b', hostile, 1)) as Record<string, unknown>;
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(JSON.stringify(value)).toBe(JSON.stringify(hostile));
  });

  test('does not depend on the order of layers with different precedence, or on their grouping', () => {
    const tree = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.integer({ min: 0, max: 2 }),
        fc.constant(null),
        fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('value')) as fc.Arbitrary<Json>,
      ),
    })).value;
    const mapping = fc.dictionary(fc.constantFrom('a', 'b'), tree) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(fc.array(mapping, { minLength: 1, maxLength: 4 }), (values) => {
        const layers = values.map((value, index) => layer(`l${index}`, value, index));
        const found = combine('deep', layers);
        expect(combine('deep', layers.toReversed()).value).toEqual(found.value);
        expect(found.conflict).toBeNull();
        expect(new Set([...found.layers, ...found.overrode])).toEqual(new Set(layers));
      }),
    );
  });
});

const declared = (parameters: string) => {
  const parsed = parseModule(`name: m\nsupports: [{}]\nparameters: { ${parameters} }\n`);
  if (!parsed.ok) throw new Error(parsed.faults.map(({ message }) => message).join());
  return parsed.module.parameters;
};
const faultsOf = (parameters: string, ...layers: Layer[]) =>
  layeredParameters(declared(parameters), { p: layers }).faults.map(({ message }) => message);

describe('layeredParameters', () => {
  test.each([
    ['type: list, merge: deep', 'deep merges only parameters of type map; this one is a list'],
    ['type: map, merge: append', 'append merges only parameters of type list; this one is a map'],
    ['type: string, merge: unique', 'unique merges only parameters of type list; this one is a string'],
    ['type: map, merge: deeply', 'must be one of replace, deep, append, unique'],
  ])('refuses the parameter declaration p: { %s }', (parameter, message) => {
    const parsed = parseModule(`name: m\nsupports: [{}]\nparameters: { p: { ${parameter} } }\n`);
    expect(parsed.ok ? [] : parsed.faults.map((fault) => `${fault.path} ${fault.message}`)).toEqual([
      `/parameters/p/merge ${message}`,
    ]);
  });

  test('names the assignment that sets an invalid part', () => {
    const users = 'p: { type: list, merge: append, items: { type: map, properties: { uid: { type: integer } } } }';
    expect(faultsOf(users, layer('base', [{ uid: 1 }]), layer('web', [{ uid: 2 }, { uid: 'x' }], 1))).toEqual([
      'parameter p[1].uid: must be a whole number, to match its type (from assignment "web")',
    ]);
    expect(faultsOf('p: { type: integer }', layer('base', 1), layer('web', 'x', 1))).toEqual([
      'parameter p: must be a whole number, to match its type (from assignment "web")',
    ]);
    expect(faultsOf('q: { type: integer }', layer('base', 1))).toEqual([
      'the module has no parameter "p": did you mean "q"? (from assignment "base")',
    ]);
  });

  test('checks the merged value as a whole', () => {
    const limited = 'p: { type: list, merge: append, maxItems: 2, items: { type: integer } }';
    expect(faultsOf(limited, layer('a', [1, 2]), layer('b', [3], 1))).toEqual([
      'parameter p: must have at most 2 elements (from assignment "b", from assignment "a")',
    ]);
    const keyed = 'p: { type: map, merge: deep, required: [x, y] }';
    expect(faultsOf(keyed, layer('a', { x: 1 }), layer('b', { y: 1 }, 1))).toEqual([]);
    expect(faultsOf(keyed, layer('a', { x: 1 }), layer('b', { x: 2 }, 1))).toEqual([
      'parameter p: needs the key "y" (from assignment "b")',
    ]);
  });

  test('accepts part of a valid value when an assignment is saved', () => {
    const of = declared(
      'p: { type: map, merge: deep, required: [x], properties: { x: { type: map, required: [a], properties: { a: { type: integer } } } } }',
    );
    expect(givenFaults(of, { p: { x: { b: null } } })).toEqual([]);
    expect(givenFaults(of, { p: { x: null } })).toEqual([]);
    expect(givenFaults(of, { p: { x: { a: 'text' } } })).toMatchObject([{ path: ['p', 'x', 'a'] }]);
    expect(givenFaults(declared('p: { type: list, merge: unique, maxItems: 1 }'), { p: [1, 1] })).toEqual([]);
  });

  test('refuses to merge values that are too deep or too numerous', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`) as Json;
    expect(faultsOf('p: { type: map, merge: deep }', layer('a', deep))).toEqual([
      'parameter p: values that are merged have at most 100000 values in total, nested at most 32 deep (from assignment "a")',
    ]);
    const half = Array(60_000).fill(1) as Json;
    expect(faultsOf('p: { type: list, merge: append }', layer('a', half), layer('b', half))).toHaveLength(1);
    expect(faultsOf('p: { type: map }', layer('a', deep))).toEqual([]);
  });
});
