import type { ResourceResult } from '@muster/protocol';
import { expect, test } from 'vitest';
import { resultOf } from '../../../test/domain.ts';
import { deviationOf } from './drift-findings.ts';
import { fingerprintsOf as fingerprintsOfDeviations, otherThan } from './drift-fingerprint.ts';

const fingerprintsOf = (results: ResourceResult[]) => fingerprintsOfDeviations(results.map(deviationOf));
const content = (from: string) => ({ field: 'content', from, to: 'declared' });
const mode = { field: 'mode', from: '0644', to: '0600' };
const moved = resultOf({ status: 'would_change', action: 'update', changes: [content('a'), mode], diff: '-a\n+b' });

test('the same deviation has the same fingerprint, however it was found', () => {
  const again = { ...moved, changes: [mode, content('a')], duration_ms: 9, message: 'slow', triggered_by: ['x'] };
  expect(fingerprintsOf([again])).toEqual(fingerprintsOf([moved]));
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([again]))).toEqual([]);
});

test.each([
  ['another value', { changes: [content('c'), mode] }],
  ['a field more', { changes: [...moved.changes, { field: 'owner', from: 'root', to: 'www' }] }],
  ['a field less', { changes: [mode] }],
  ['what only the diff shows', { diff: '-a\n-c\n+b' }],
  ['another action', { action: 'create' as const }],
  ['a failure', { status: 'failed' as const }],
  ['another module', { module: 'other' }],
])('treats %s as a different deviation', (_, change) => {
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([{ ...moved, ...change }]))).toEqual(['path:/etc/motd']);
});

test('what is new is other than before; what is gone is not', () => {
  const both = fingerprintsOf([moved, { ...moved, identity: '/b' }]);
  expect(otherThan(fingerprintsOf([moved]), both)).toEqual(['path:/b']);
  expect(otherThan(both, fingerprintsOf([moved]))).toEqual([]);
});

test('a hidden value counts as it is shown', () => {
  const hidden = { ...moved, sensitive: true, diff: null, changes: [{ ...content('(sensitive)'), to: '(sensitive)' }] };
  expect(fingerprintsOf([hidden])).toEqual(fingerprintsOf([structuredClone(hidden)]));
  expect(otherThan(fingerprintsOf([moved]), fingerprintsOf([hidden]))).toHaveLength(1);
});

test('two results of one resource stand for each other no more than once', () => {
  const twice = fingerprintsOf([moved, { ...moved, changes: [mode] }]);
  expect(Object.keys(twice)).toEqual(['path:/etc/motd']);
  expect(otherThan(fingerprintsOf([moved]), twice)).toHaveLength(1);
});
