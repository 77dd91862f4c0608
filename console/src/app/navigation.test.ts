import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { destinations } from './navigation.ts';

test('gives every page a unique key other than g', () => {
  const pressed = destinations.map(({ key }) => key);
  expect(new Set(pressed).size).toBe(pressed.length);
  expect(pressed).not.toContain('g');
});

test('documents every key in docs/console.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/console.md'), 'utf8');
  const named = [...page.matchAll(/^\| `g (.)` \| go to (.+) \|$/gm)].map(([, key, label]) => `${key} ${label}`);
  expect(named).toEqual(destinations.map(({ key, label }) => `${key} ${label}`));
});
