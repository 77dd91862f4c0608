import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ConformanceCase, conformanceCases } from '../../../test/cel-conformance.ts';
import { conformancePage } from '../../../test/cel-conformance-page.ts';
import { reasonOf, unusedReasons } from '../../../test/cel-conformance-reasons.ts';

const cases = conformanceCases();
const shareOf = (name: string): number => {
  const of = cases.filter(({ section }) => section === name);
  return of.filter(({ passes }) => passes).length / of.length;
};

// After an intentional change, update the page by running `vitest run -u` on this file.
test('passes exactly the CEL test cases that the page does not list', async () => {
  await expect(conformancePage(cases)).toMatchFileSnapshot(
    join(import.meta.dirname, '../../../../docs/cel-conformance.md'),
  );
});

test.each(['string', 'fp_math', 'plumbing', 'bindings_ext'])('passes all test cases in the section %s', (name) => {
  expect(shareOf(name)).toBe(1);
});

test('runs the whole conformance suite', () => {
  expect(cases.length).toBeGreaterThan(2000);
  expect(new Set(cases.map(({ section }) => section)).size).toBe(28);
});

test('knows a reason for each test case that does not pass, and no other reasons', () => {
  const failed = cases.filter(({ passes }) => !passes);
  expect(failed.filter((one) => reasonOf(one) === undefined).map(({ section, name }) => `${section}: ${name}`)).toEqual(
    [],
  );
  expect(unusedReasons(failed)).toEqual([]);
});

test('lists a test case that no longer passes', () => {
  const [one] = cases.filter(({ section, passes }) => section === 'string' && passes);
  const failing = { ...one, group: 'size', name: 'empty', passes: false } as ConformanceCase;
  expect(conformancePage([failing])).toContain('### string\n\n- **no known reason** — `size`: `empty`\n');
});
