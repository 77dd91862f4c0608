import type { ResourceResult } from '@muster/protocol';
import { expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { deviationOf } from './drift-findings.ts';
import { fingerprintsOf as fingerprintsOfDeviations, otherThan } from './drift-fingerprint.ts';

const fingerprintsOf = (results: ResourceResult[]) => fingerprintsOfDeviations(results.map(deviationOf));
const content = (from: string) => ({ field: 'content', from, to: 'declared' });
const mode = { field: 'mode', from: '0644', to: '0600' };
const moved = resultOf({ status: 'would_change', action: 'update', changes: [content('a'), mode], diff: '-a\n+b' });

test('computes equal fingerprints for the same drift found by a drift check and by a plan', () => {
  const again = { ...moved, changes: [mode, content('a')], duration_ms: 9, message: 'slow', triggered_by: ['x'] };
  expect(fingerprintsOf([again])).toEqual(fingerprintsOf([moved]));
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([again]))).toEqual([]);
});

test.each([
  ['another value', { changes: [content('c'), mode] }],
  ['an additional field', { changes: [...moved.changes, { field: 'owner', from: 'root', to: 'www' }] }],
  ['a missing field', { changes: [mode] }],
  ['a change in the diff only', { diff: '-a\n-c\n+b' }],
  ['another action', { action: 'create' as const }],
  ['a failure', { status: 'failed' as const }],
  ['another module', { module: 'other' }],
])('treats %s as different drift', (_, change) => {
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([{ ...moved, ...change }]))).toEqual(['path:/etc/motd']);
});

test('returns new and changed fingerprints, but not those of cleared drift', () => {
  const both = fingerprintsOf([moved, { ...moved, identity: '/b' }]);
  expect(otherThan(fingerprintsOf([moved]), both)).toEqual(['path:/b']);
  expect(otherThan(both, fingerprintsOf([moved]))).toEqual([]);
});

test('hashes a hidden value in its masked form', () => {
  const hidden = { ...moved, sensitive: true, diff: null, changes: [{ ...content('(sensitive)'), to: '(sensitive)' }] };
  expect(fingerprintsOf([hidden])).toEqual(fingerprintsOf([structuredClone(hidden)]));
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([hidden]))).toHaveLength(1);
});

test('includes every result for a resource in its fingerprint', () => {
  const twice = fingerprintsOf([moved, { ...moved, changes: [mode] }]);
  expect(Object.keys(twice)).toEqual(['path:/etc/motd']);
  expect(otherThan(fingerprintsOf([moved]), twice)).toHaveLength(1);
});
