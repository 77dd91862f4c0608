import { expect, test } from 'vitest';
import { isLike } from './draft-shape.ts';

const example = { name: '', modules: [], restriction: { kind: 'any', agents: [] }, replaces: false };

test('accepts a stored value with the fields of the form', () => {
  const stored = { name: 'a', modules: ['b'], restriction: { kind: 'both', agents: ['c'] }, replaces: true };
  expect(isLike(example, stored)).toBe(true);
});

test('refuses a stored value with a missing field, or a field of another type', () => {
  for (const stored of [
    null,
    'text',
    [],
    { ...example, name: undefined },
    { ...example, name: null },
    { ...example, modules: {} },
    { ...example, replaces: 'yes' },
    { ...example, restriction: { kind: 'any' } },
    { ...example, restriction: [] },
  ])
    expect(isLike(example, stored), JSON.stringify(stored)).toBe(false);
});
