import fc from 'fast-check';
import { expect, test } from 'vitest';
import { disabledBy, planFaults, randomFrom, subjectOf } from './fault-plan.ts';

const options = fc.record({
  seed: fc.nat(),
  faults: fc.integer({ min: 1, max: 60 }),
  replicas: fc.integer({ min: 2, max: 4 }),
  everyMs: fc.integer({ min: 0, max: 10_000 }),
});

test('plans as many faults as requested, in the order of their starts, and the same ones again', () => {
  fc.assert(
    fc.property(options, (of) => {
      const plan = planFaults(of);
      expect(plan).toHaveLength(of.faults);
      expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).toSorted((one, other) => one - other));
      expect(planFaults(of)).toEqual(plan);
    }),
  );
});

test('plans at most one fault of the same target at a time, and always leaves one replica undisturbed', () => {
  fc.assert(
    fc.property(options, (of) => {
      const plan = planFaults(of);
      for (const fault of plan) {
        const together = plan.filter((other) => other.at <= fault.at && other.at + other.lasts > fault.at);
        expect(new Set(together.map(subjectOf)).size).toBe(together.length);
        const disabled = new Set(together.map(disabledBy).filter((replica) => replica !== null));
        expect(disabled.size).toBeLessThan(of.replicas);
      }
    }),
  );
});

test('includes each kind of fault if there are enough of them', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const plan = planFaults({ seed, faults: 6, replicas: 3, everyMs: 1_000 });
      expect(new Set(plan.map(({ kind }) => kind)).size).toBe(6);
    }),
  );
});

test('plans different faults for different seeds', () => {
  const plans = Array.from({ length: 50 }, (_, seed) => planFaults({ seed, faults: 5, replicas: 3, everyMs: 1_000 }));
  expect(new Set(plans.map((plan) => JSON.stringify(plan))).size).toBe(50);
});

test('draws evenly distributed numbers', () => {
  const random = randomFrom(1);
  const numbers = Array.from({ length: 10_000 }, random);
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.02);
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
});
