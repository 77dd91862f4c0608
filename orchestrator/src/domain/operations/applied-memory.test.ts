import { expect, test } from 'vitest';
import { appliedDigest, createAppliedMemory } from './applied-memory.ts';

const payload = 'ab'.repeat(32);
const revisionsOf = (modules: number, revision = 1) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: modules }, (_, at) => [`module-${at}`, revision])));

test('uses as many bytes for an apply of 1,000 modules as for an apply of one module', () => {
  const [one, many] = [appliedDigest(payload, revisionsOf(1)), appliedDigest(payload, revisionsOf(1_000))];
  expect([one.length, many.length]).toEqual([43, 43]);
});

test('distinguishes applies of the same desired state from different revisions', () => {
  const memory = createAppliedMemory();
  memory.remember('a', appliedDigest(payload, revisionsOf(2)), 'operation');
  expect(memory.sameAs('a', appliedDigest(payload, revisionsOf(2)))).toBe('operation');
  expect(memory.sameAs('a', appliedDigest(payload, revisionsOf(2, 2)))).toBe(null);
  expect(memory.sameAs('a', appliedDigest(payload, null))).toBe(null);
  expect(memory.sameAs('a', null)).toBe(null);
  expect(memory.sameAs('b', appliedDigest(payload, revisionsOf(2)))).toBe(null);
});
