import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stableOrder } from './order.ts';

/** Generates dependencies without a cycle: each index depends only on indices that precede it in a random order. */
const acyclic = fc
  .integer({ min: 0, max: 30 })
  .chain((size) =>
    fc.record({
      hidden: fc.shuffledSubarray([...Array(size).keys()], { minLength: size, maxLength: size }),
      picks: fc.array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: size, maxLength: size }),
    }),
  )
  .map(({ hidden, picks }) => {
    const dependencies: number[][] = hidden.map(() => []);
    hidden.forEach((index, position) => {
      dependencies[index] =
        position === 0 ? [] : (picks[position] as number[]).map((pick) => hidden[pick % position] as number);
    });
    return dependencies;
  });

describe('stableOrder', () => {
  test('keeps the declaration order if there are no dependencies', () => {
    expect(stableOrder([[], [], []])).toEqual({ ok: true, order: [0, 1, 2] });
    expect(stableOrder([])).toEqual({ ok: true, order: [] });
  });

  test('moves only resources that must wait for a dependency', () => {
    expect(stableOrder([[3], [], [], []])).toEqual({ ok: true, order: [1, 2, 3, 0] });
  });

  test('orders each index exactly once and after all its dependencies', () => {
    fc.assert(
      fc.property(acyclic, (dependencies) => {
        const sorted = stableOrder(dependencies);
        if (!sorted.ok) throw new Error('no cycle was made');
        expect([...sorted.order].sort((a, b) => a - b)).toEqual([...dependencies.keys()]);
        const position = new Map(sorted.order.map((index, at) => [index, at]));
        dependencies.forEach((needed, index) => {
          for (const dependency of needed) expect(position.get(dependency)).toBeLessThan(position.get(index) as number);
        });
      }),
    );
  });

  test('continues with the first declared resource that is ready', () => {
    fc.assert(
      fc.property(acyclic, (dependencies) => {
        const sorted = stableOrder(dependencies);
        if (!sorted.ok) throw new Error('no cycle was made');
        const done = new Set<number>();
        for (const index of sorted.order) {
          const ready = dependencies.findIndex((needed, i) => !done.has(i) && needed.every((one) => done.has(one)));
          expect(index).toBe(ready);
          done.add(index);
        }
      }),
    );
  });

  test('reports a cycle starting with its first declared resource', () => {
    expect(stableOrder([[], [3], [1], [2], [3]])).toEqual({ ok: false, cycle: [1, 3, 2] });
    expect(stableOrder([[0]])).toEqual({ ok: false, cycle: [0] });
  });

  test('reports only the resources in a cycle', () => {
    const anything = fc
      .integer({ min: 1, max: 12 })
      .chain((size) =>
        fc.array(fc.array(fc.nat({ max: size - 1 }), { maxLength: 3 }), { minLength: size, maxLength: size }),
      );
    fc.assert(
      fc.property(anything, (dependencies) => {
        const sorted = stableOrder(dependencies);
        if (sorted.ok) return;
        sorted.cycle.forEach((index, position) => {
          const next = sorted.cycle[(position + 1) % sorted.cycle.length];
          expect(dependencies[index]).toContain(next);
        });
        expect(new Set(sorted.cycle).size).toBe(sorted.cycle.length);
      }),
    );
  });
});
