import { expect, test } from 'vitest';
import { applyLabel, planText } from './plan-words.ts';

test('always states changes and removals, and states unchanged resources only if there are any', () => {
  expect(planText({ changed: 2, removed: 0, unchanged: 0 })).toBe('2 to change, 0 to remove');
  expect(planText({ changed: 0, removed: 1, unchanged: 5 })).toBe('0 to change, 1 to remove, 5 unchanged');
});

test('shows the number of changes and removals on the button', () => {
  expect(applyLabel({ changed: 2, removed: 0 })).toBe('Apply 2 changes');
  expect(applyLabel({ changed: 1, removed: 3 })).toBe('Apply 1 change, remove 3');
  expect(applyLabel({ changed: 0, removed: 1 })).toBe('Remove 1 resource');
  expect(applyLabel({ changed: 0, removed: 0 })).toBe('Apply anyway');
});
