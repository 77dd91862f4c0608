import { isName } from '@muster/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../protocol/test/code-point.ts';
import { nameFrom, profileFor } from './names.ts';

test.each([
  ['web-1', 'web-1'],
  ['web-1.example.org', 'web-1'],
  ['Ada’s MacBook Pro', 'Ada-s-MacBook-Pro'],
  ['127-0-0-1', 'machine'],
  ['7of9', 'of9'],
  ['', 'machine'],
  ['...', 'machine'],
  ['straße', 'straße'],
  ['ab'.repeat(16), `machine-${'ab'.repeat(15)}`],
  ['x'.repeat(80), 'x'.repeat(64)],
])('converts %s to the name %s', (text, name) => {
  expect(nameFrom(text, 'machine')).toBe(name);
});

test('returns a valid agent name for any hostname', () => {
  fc.assert(fc.property(fc.string({ unit: codePoint, maxLength: 300 }), (text) => isName(nameFrom(text, 'machine'))));
});

describe('the profile of the orchestrator started here', () => {
  const url = 'https://127.0.0.1:4748';
  const local = { name: 'local', url, fingerprint: 'AB:12', current: true };

  test("reuses the profile `local` if either the orchestrator's address or its certificate has changed", () => {
    expect(profileFor([], url, null)).toBe('local');
    expect(profileFor([local], url, 'CD:34')).toBe('local');
    expect(profileFor([local], 'https://127.0.0.1:5000', 'ab12')).toBe('local');
  });

  test('keeps a `local` profile for another orchestrator', () => {
    const elsewhere = { ...local, url: 'https://example:4748' };
    expect(profileFor([elsewhere], url, 'CD:34')).toBe('local-2');
    expect(profileFor([elsewhere], url, null)).toBe('local-2');
    expect(profileFor([elsewhere, { ...local, name: 'local-2' }], url, 'CD:34')).toBe('local-2');
    expect(profileFor([elsewhere, { ...elsewhere, name: 'local-2' }], url, 'CD:34')).toBe('local-3');
  });
});
