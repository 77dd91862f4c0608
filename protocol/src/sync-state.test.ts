import { expect, test } from 'vitest';
import { listReconcile, type OffAgent } from './http/reconcile.ts';
import { decideSyncState, type SyncFacts, syncStateOf } from './sync-state.ts';

const nothing: SyncFacts = { reasons: [], isOutdated: false, hasDrifted: false, isApplied: true };
const [full] = listReconcile.example.answer as never as [OffAgent];
const { outdated, ...current } = full;

test.each([
  [{}, 'in_sync'],
  [{ isApplied: false }, 'never_applied'],
  [{ hasDrifted: true }, 'accepted'],
  [{ isOutdated: true }, 'outdated'],
  [{ isOutdated: true, hasDrifted: true }, 'outdated'],
  [{ isOutdated: true, isApplied: false }, 'outdated'],
  [{ hasDrifted: true, isApplied: false }, 'accepted'],
  [{ reasons: ['apply_failed'], isApplied: false }, 'out_of_sync'],
  [{ reasons: ['drifted'], isOutdated: true, hasDrifted: true }, 'out_of_sync'],
] as const)('decides that an agent with %j is %s', (facts, state) => {
  expect(decideSyncState({ ...nothing, ...facts } as SyncFacts)).toBe(state);
});

test("decides an agent's state from its entry in the reconcile list", () => {
  expect(syncStateOf(null, true)).toBe('in_sync');
  expect(syncStateOf(null, false)).toBe('never_applied');
  expect(syncStateOf(full, true)).toBe('out_of_sync');
  expect(syncStateOf({ ...full, reasons: [] }, true)).toBe('outdated');
  expect(syncStateOf({ reasons: [], drift: [], ...(outdated && { outdated }) }, true)).toBe('outdated');
  expect(syncStateOf({ ...current, reasons: [] }, true)).toBe('accepted');
});
