import { expect, test } from 'vitest';
import { choosePolicy, parseFingerprint, showFingerprint } from './trust.ts';

const print = '0f'.repeat(32);
const other = '1e'.repeat(32);

test.each([
  print,
  `sha256:${print}`,
  `SHA256:${print.toUpperCase()}`,
  print.match(/../g)?.join(':').toUpperCase() ?? '',
  `sha256 ${print}\n`,
])('parses the fingerprint %s', (text) => {
  expect(parseFingerprint(text)).toBe(print);
});

test('shows a fingerprint as the orchestrator and OpenSSL do, in a form that can be typed', () => {
  expect(showFingerprint('0f1e'.repeat(16))).toBe(`0F:1E${':0F:1E'.repeat(15)}`);
  expect(parseFingerprint(showFingerprint(print))).toBe(print);
});

test.each(['', print.slice(1), `${print}0`, `md5:${print}`, 'g'.repeat(64)])('refuses the fingerprint %s', (text) => {
  expect(parseFingerprint(text)).toBeNull();
});

test('prefers a specified fingerprint to the stored one and to --insecure-skip-verify', () => {
  const policy = choosePolicy({ insecure: true, given: other, givenBy: '--fingerprint', stored: print });
  expect(policy).toEqual({ kind: 'pinned', fingerprint: other, source: '--fingerprint' });
});

test('uses the stored certificate unless the check is disabled', () => {
  expect(choosePolicy({ insecure: false, given: null, givenBy: '--fingerprint', stored: print })).toMatchObject({
    kind: 'pinned',
    fingerprint: print,
  });
  expect(choosePolicy({ insecure: true, given: null, givenBy: '--fingerprint', stored: print })).toEqual({
    kind: 'anything',
  });
  expect(choosePolicy({ insecure: false, given: null, givenBy: '--fingerprint', stored: null })).toEqual({
    kind: 'authorities',
  });
});
