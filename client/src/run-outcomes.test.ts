import { expect, test } from 'vitest';
import { runOutcomeOf, runOutcomesText } from './run-outcomes.ts';

test('distinguishes an agent that the run did not reach from an agent whose operation was canceled', () => {
  expect(runOutcomeOf({ status: 'cancelled', operation_id: null })).toBe('skipped');
  expect(runOutcomeOf({ status: 'cancelled', operation_id: 'o' })).toBe('cancelled');
  expect(runOutcomeOf({ status: 'queued', operation_id: null })).toBe('waiting');
  expect(runOutcomeOf({ status: 'queued', operation_id: 'o' })).toBe('running');
  expect(runOutcomeOf({ status: 'expired', operation_id: 'o' })).toBe('failed');
});

test('counts failures first and omits outcomes that no agent has', () => {
  const none = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, running: 0, waiting: 0 };
  expect(runOutcomesText({ ...none, succeeded: 18, failed: 1, skipped: 1 })).toBe('1 failed, 1 skipped, 18 succeeded');
  expect(runOutcomesText({ ...none, cancelled: 2 })).toBe('2 canceled');
  expect(runOutcomesText(none)).toBe('');
});
