import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conflictText, type Layer } from '../parameters/layers.ts';
import { layeredParameters } from '../parameters.ts';
import { parseModule } from '../parse.ts';
import { resolveDesiredSet } from '../resolve.ts';
import { type Requires, requiredCycle, withRequired, withRequiredLayers } from './requires.ts';

const requires = (of: Record<string, string[]>): Requires => new Map(Object.entries(of));
const parsed = (source: string) => parseModule(`name: m\nsupports: [{ platform: linux }]\n${source}`);

test('puts each module after the modules that it requires, and only once', () => {
  const of = requires({ site: ['nginx', 'tls'], nginx: ['base'], tls: ['base'] });
  expect(withRequired(['site'], of)).toEqual(['base', 'nginx', 'tls', 'site']);
  expect(withRequired(['site', 'nginx', 'motd'], of)).toEqual(['base', 'nginx', 'tls', 'site', 'motd']);
  expect(withRequired(['b', 'a', 'b'], of)).toEqual(['b', 'a']);
});

test('adds the modules of a long chain of requirements', () => {
  const chain = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`m${n}`, [`m${n + 1}`]]));
  expect(withRequired(['m0'], requires(chain))).toHaveLength(20_001);
});

test('orders every acyclic graph, and names the members of every cycle', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const graph = fc.dictionary(fc.constantFrom(...names), fc.subarray(names));
  fc.assert(
    fc.property(graph, fc.subarray(names), (of, given) => {
      const edges = requires(of);
      const all = withRequired(given, edges);
      expect(new Set(all).size).toBe(all.length);
      for (const name of given) expect(all).toContain(name);
      for (const name of all) for (const required of edges.get(name) ?? []) expect(all).toContain(required);
      const cycle = requiredCycle(given, edges);
      if (cycle === null)
        for (const [index, name] of all.entries())
          for (const required of edges.get(name) ?? []) expect(all.indexOf(required)).toBeLessThan(index);
      else
        for (const [index, name] of cycle.slice(0, -1).entries())
          expect(edges.get(name) ?? []).toContain(cycle[index + 1]);
    }),
  );
});

test('parses the requirements of a module', () => {
  const found = parsed('requires: [{ module: base, with: { port: 80, hosts: [a] } }, { module: tls, with: null }]');
  expect(found.ok && found.module.requires).toEqual([
    { module: 'base', with: { port: 80, hosts: ['a'] } },
    { module: 'tls', with: {} },
  ]);
});

describe('withRequiredLayers', () => {
  const moduleOf = (source: string) => {
    const found = parseModule(source);
    if (!found.ok) throw new Error(JSON.stringify(found.faults));
    return found.module;
  };
  const base = moduleOf('name: base\nsupports: [{}]\nparameters: { port: { type: integer, default: 1 } }\n');
  const requiring = ['80', '80', '81'].map((port, index) =>
    moduleOf(`name: m${index}\nsupports: [{}]\nrequires: [{ module: base, with: { port: ${port} } }]\n`),
  );
  const agent = { name: 'a', node_id: '1', attributes: {}, tags: {} };
  const portOf = (layers: readonly Layer[], modules = requiring.slice(0, 2)) => {
    const all = withRequiredLayers([base, ...modules], { base: { port: layers } });
    const { values, conflicts } = layeredParameters(base.parameters, all.base ?? {}, agent);
    const [found] = conflicts;
    return found === undefined ? values.get('port') : conflictText('base', found.name, found.conflict);
  };
  const assigned = (value: number, precedence: number): Layer => ({ value, from: 'assignment', name: 'x', precedence });

  test('gives the values in `with` the precedence -1', () => {
    expect(portOf([])).toBe(80);
    expect(portOf([assigned(443, 0)])).toBe(443);
    expect(portOf([assigned(443, -2)])).toBe(80);
    expect(portOf([assigned(443, -1)])).toBe(
      'module m0 and assignment x set the parameter port of module base to different values; give the assignment another precedence',
    );
  });

  test('reports different values from two modules unless an assignment sets the value', () => {
    expect(portOf([], requiring)).toBe(
      'modules m0 and m2 require base with different values of port: set it in an assignment',
    );
    expect(portOf([assigned(1, 0)], requiring)).toBe(1);
    expect(resolveDesiredSet({ modules: [base, ...requiring], agent })).toMatchObject({
      ok: false,
      code: 'module_conflict',
      faults: [{ path: '/parameters/base/port' }],
    });
  });

  test('omits values for modules that are not in the desired set', () => {
    expect(resolveDesiredSet({ modules: requiring, agent }).ok).toBe(true);
  });
});

test.each([
  ['[{ module: m }]', '/requires/0/module the module requires itself: remove this entry'],
  ['[{ module: a }, { module: a }]', '/requires/1/module "a" is required twice: keep one entry'],
  [
    '[{ module: a, with: { p: "${{ param.x }}" } }]',
    '/requires/0/with/p cannot contain an expression: write the value',
  ],
  ['[{ with: {} }]', '/requires/0/module "module" is required'],
  ['[a]', '/requires/0 must be a mapping of module and with'],
  ['a', '/requires must be a list of mappings, such as { module: base }'],
])('refuses `requires: %s`', (written, fault) => {
  const found = parsed(`requires: ${written}`);
  expect(found.ok ? [] : found.faults.map(({ path, message }) => `${path} ${message}`)).toEqual([fault]);
});
