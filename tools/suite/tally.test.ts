import { expect, test } from 'vitest';
import { describeError } from './tally.ts';

test('describes an error with its causes and the seed of a property test', () => {
  const cause = { name: 'Error', message: 'expected 1 to be 2' };
  const error = { name: 'Error', message: 'Property failed\n{ seed: 7, path: "0" }', cause };
  expect(describeError(error)).toBe('Property failed\n  { seed: 7, path: "0" }\n  cause: expected 1 to be 2');
});

test('describes an error without a message, and truncates a long error', () => {
  expect(describeError(undefined)).toBe('no reason given');
  expect(describeError({ message: 'x'.repeat(10_000) })).toHaveLength(3_000);
});
