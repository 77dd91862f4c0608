import type { ResourceBodies } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import type { ShadowEntry } from '../../host/accounts/account-files.ts';
import { signInBack, signInChanges, touchSignIn, unlockFault, wantedPassword } from './sign-in.ts';
import { userUnix } from './user-unix.ts';

type Body = ResourceBodies['user-unix'];

const hash = '$6$salt$oursours';
const entry = (password: string | null, ageing = ['19000', '0', '99999', '7', '', '']): ShadowEntry => ({
  password,
  ageing,
});
const changes = (body: Partial<Body>, now: ShadowEntry | null) => signInChanges({ name: 'ann', ...body }, now);
const fields = (body: Partial<Body>, now: ShadowEntry | null) => changes(body, now).map(({ field }) => field);

describe('the declaration of a password', () => {
  test('compares the hash without its lock mark, and never reports the hash', () => {
    expect(changes({ password_hash: hash }, entry('$6$other$other'))).toEqual([
      { field: 'password_hash', from: null, to: null },
    ]);
    expect(fields({ password_hash: hash }, entry(`!${hash}`))).toEqual([]);
    expect(fields({ password_hash: hash, locked: false }, entry(`!${hash}`))).toEqual(['locked']);
    expect(fields({ password_hash: '!' }, entry('!'))).toEqual([]);
    expect(fields({ password_hash: '*' }, entry('!'))).toEqual(['password_hash']);
    expect(fields({ password_hash: hash }, null)).toEqual(['password_hash']);
  });

  test.each<[Partial<Body>, string | null, string | null]>([
    [{ password_hash: hash }, '$6$other$other', hash],
    [{ password_hash: hash }, '!', hash],
    // An account that was locked by hand stays locked.
    [{ password_hash: hash }, '!$6$other$other', `!${hash}`],
    [{ password_hash: hash, locked: true }, '!', `!${hash}`],
    [{ password_hash: hash, locked: false }, '!$6$other$other', hash],
    [{ locked: true }, hash, `!${hash}`],
    [{ locked: false }, `!${hash}`, hash],
    [{}, hash, null],
  ])('with %j, changes the password field %s to %s', (body, now, wanted) => {
    expect(wantedPassword({ name: 'ann', ...body }, now)).toBe(wanted);
  });

  test('refuses to unlock an account without a password', () => {
    expect(unlockFault({ name: 'ann', locked: false }, entry('!'))).toContain('has no password');
    expect(unlockFault({ name: 'ann', locked: false }, null)).toContain('has no password');
    expect(unlockFault({ name: 'ann', locked: false, password_hash: hash }, entry('!'))).toBeNull();
    expect(unlockFault({ name: 'ann', locked: false }, entry(`!${hash}`))).toBeNull();
  });

  test('refuses a plaintext password, and does not include it in the message', () => {
    const check = (password_hash: string) =>
      userUnix.check({ body: { name: 'ann', password_hash } } as Parameters<typeof userUnix.check>[0]);
    for (const plain of ['hunter2', '', '$', '$6$hunter2', `${hash}\nroot:x`, `${hash}:0`, '!!'])
      expect(() => check(plain)).toThrow(/^`password_hash` is not a hash(?!.*hunter2)/);
    for (const fine of [hash, '$y$j9T$abc./$defghij', '*', '!']) expect(() => check(fine)).not.toThrow();
  });
});

test('compares days as in /etc/shadow, and reports them as dates', () => {
  const now = entry('!', ['19000', '0', '99999', '7', '', '21945']);
  expect(fields({ expires: '2030-01-31', password_max_days: 99_999, password_inactive_days: -1 }, now)).toEqual([]);
  expect(changes({ expires: 'never', password_max_days: -1, password_warn_days: 14 }, now)).toEqual([
    { field: 'password_max_days', from: '99999', to: '-1' },
    { field: 'password_warn_days', from: '7', to: '14' },
    { field: 'expires', from: '2030-01-31', to: 'never' },
  ]);
});

test('restores only the fields that were changed, and the password with the day of its change', () => {
  const original = entry('$6$other$other', ['1000', '0', '90', '7', '', '']);
  const touched = touchSignIn({}, original, new Set(['password_hash', 'expires']));
  const now = entry(hash, ['20000', '1', '60', '7', '', '21945']);
  expect(touchSignIn(touched, now, new Set(['locked', 'password_max_days']))).toEqual({
    ...touched,
    password_max_days: '60',
  });
  expect(signInBack(touched, now)).toEqual([
    { field: 'password_hash', from: null, to: null },
    { field: 'expires', from: '2030-01-31', to: 'never' },
  ]);
  expect(signInBack(touched, original)).toEqual([]);
});
