import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cyclesOf, folderGraph } from './cycles.ts';

const graph = (edges: Record<string, string[]>) =>
  new Map(Object.entries(edges).map(([file, targets]) => [file, new Set(targets)]));

test('finds no cycle in a tree', () => {
  expect(cyclesOf(graph({ a: ['b', 'c'], b: ['c'], c: [] }))).toEqual([]);
});

test('lists each cycle once, sorted by name', () => {
  expect(cyclesOf(graph({ d: ['c'], c: ['d'], b: ['a'], a: ['x'], x: ['b', 'c'] }))).toEqual([
    ['a', 'b', 'x'],
    ['c', 'd'],
  ]);
});

test('puts two files in one cycle only if each file imports the other, directly or indirectly', () => {
  const nodes = ['a', 'b', 'c', 'd', 'e', 'f'];
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...nodes), fc.constantFrom(...nodes)), { maxLength: 14 }),
      (edges) => {
        const from = graph(
          Object.fromEntries(nodes.map((node) => [node, edges.filter(([a]) => a === node).map(([, b]) => b)])),
        );
        const reaches = (a: string, b: string) => {
          const seen = new Set<string>();
          const open = [...(from.get(a) ?? [])];
          for (let next = open.pop(); next !== undefined; next = open.pop()) {
            if (next === b) return true;
            if (!seen.has(next)) open.push(...(from.get(next) ?? []));
            seen.add(next);
          }
          return false;
        };
        const cycles = cyclesOf(from);
        for (const a of nodes)
          for (const b of nodes)
            if (a !== b)
              expect(cycles.some((cycle) => cycle.includes(a) && cycle.includes(b))).toBe(
                reaches(a, b) && reaches(b, a),
              );
      },
    ),
  );
});

test('builds the import graph of folders, without files directly in the parent', () => {
  const files = graph({
    'x/src/main.ts': ['x/src/a/one.ts'],
    'x/src/a/one.ts': ['x/src/b/two.ts', 'x/src/a/three.ts', 'y/src/b/two.ts', 'x/src/main.ts'],
    'x/src/b/two.ts': [],
  });
  expect(folderGraph(files, 'x/src')).toEqual(graph({ a: ['b'], b: [] }));
});
