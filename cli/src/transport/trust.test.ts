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
])('%s is read as a fingerprint', (text) => {
  expect(parseFingerprint(text)).toBe(print);
});

test('a fingerprint is shown as the orchestrator and OpenSSL show it, and what is shown can be typed', () => {
  expect(showFingerprint('0f1e'.repeat(16))).toBe(`0F:1E${':0F:1E'.repeat(15)}`);
  expect(parseFingerprint(showFingerprint(print))).toBe(print);
});

test.each(['', print.slice(1), `${print}0`, `md5:${print}`, 'g'.repeat(64)])('%s is not a fingerprint', (text) => {
  expect(parseFingerprint(text)).toBeNull();
});

test('a certificate that was named beats everything, also a flag that would take the check away', () => {
  const policy = choosePolicy({ insecure: true, given: other, stored: print });
  expect(policy).toEqual({ kind: 'pinned', fingerprint: other, source: 'given' });
});

test('a stored certificate is held to, until the check is taken away on purpose', () => {
  expect(choosePolicy({ insecure: false, given: null, stored: print })).toMatchObject({
    kind: 'pinned',
    fingerprint: print,
  });
  expect(choosePolicy({ insecure: true, given: null, stored: print })).toEqual({ kind: 'anything' });
  expect(choosePolicy({ insecure: false, given: null, stored: null })).toEqual({ kind: 'authorities' });
});
