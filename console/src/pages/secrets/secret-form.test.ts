import { expect, test } from 'vitest';
import {
  dayOf,
  endOfDay,
  expiryOf,
  isPlainHttp,
  kindOf,
  nameFault,
  randomValue,
  restrictionOf,
} from './secret-form.ts';

test.each([
  ['any', null],
  ['agents', { node_ids: ['a'], tags: null }],
  ['selector', { node_ids: null, tags: 'role=web' }],
  ['both', { node_ids: ['a'], tags: 'role=web' }],
] as const)('reads and builds a restriction to %s', (kind, restriction) => {
  expect(kindOf(restriction as never)).toBe(kind);
  expect(restrictionOf({ kind, agents: ['a'], selector: 'role=web' })).toEqual(restriction);
});

test('treats an empty restriction as any agent, and keeps a restriction to no agents', () => {
  expect(kindOf({ node_ids: null, tags: null })).toBe('any');
  expect(restrictionOf({ kind: 'agents', agents: [], selector: '' })).toEqual({ node_ids: [], tags: null });
});

test('uses the end of the local day as expiry, and keeps the exact time if the day is unchanged', () => {
  const before = new Date(2027, 0, 31, 8, 30).toISOString();
  expect(dayOf(before)).toBe('2027-01-31');
  expect(endOfDay('2027-01-31', before)).toBe(before);
  expect(endOfDay('2027-02-01', before)).toBe(new Date(2027, 1, 1, 23, 59, 59).toISOString());
  expect([endOfDay('', before), dayOf(null)]).toEqual([null, '']);
});

test('classifies the expiry of a secret', () => {
  const now = Date.parse('2027-01-01T00:00:00Z');
  expect(
    [null, '2026-12-31T00:00:00Z', '2027-01-03T00:00:00Z', '2027-01-30T00:00:00Z', '2027-02-01T00:00:00Z'].map((at) =>
      expiryOf(at, now),
    ),
  ).toEqual(['none', 'expired', 'days', 'soon', 'later']);
});

test('generates random values without bias', () => {
  let next = 0;
  const value = randomValue((bytes) => {
    for (const index of bytes.keys()) bytes[index] = next++ % 256;
  });
  expect(value).toMatch(/^[\w-]{32}$/);
  // 255 is not below 228, the largest multiple of the alphabet's length (57), so this byte is skipped.
  let round = 0;
  const skipped = randomValue((bytes) => bytes.fill(round++ === 0 ? 255 : 0));
  expect(skipped).toBe('A'.repeat(32));
});

test('validates names, and detects plain HTTP', () => {
  expect([nameFault(''), nameFault('db_password-2')]).toEqual([null, null]);
  expect([nameFault('2x'), nameFault('a b'), nameFault('x'.repeat(65))]).not.toContain(null);
  expect(isPlainHttp('http:', '10.0.0.5')).toBe(true);
  for (const host of ['localhost', '127.0.0.1', '[::1]']) expect(isPlainHttp('http:', host)).toBe(false);
  expect(isPlainHttp('https:', '10.0.0.5')).toBe(false);
});
