import { expect, test } from 'vitest';
import { tagsOf, tokenState } from './token-state.ts';

const token = { revoked_at: null, uses_left: 1, expires_at: 100 };

test('reports a token as valid until it is revoked, used up, or expired', () => {
  expect(tokenState(token, 99_999)).toBe('valid');
  expect(tokenState(token, 100_000)).toBe('expired');
  expect(tokenState({ ...token, uses_left: 0 }, 0)).toBe('used up');
  expect(tokenState({ ...token, revoked_at: 5, uses_left: 0 }, 0)).toBe('revoked');
});

test('parses tags typed as key=value', () => {
  expect(tagsOf('')).toEqual({});
  expect(tagsOf(' role=web, site=paris\nnote=a=b ')).toEqual({ role: 'web', site: 'paris', note: 'a=b' });
  expect(() => tagsOf('role')).toThrow('“role” is not a tag');
  expect(() => tagsOf('=web')).toThrow('is not a tag');
});
