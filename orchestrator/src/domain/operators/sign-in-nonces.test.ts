import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { BoundNonces, UnboundNonces } from './sign-in-nonces.ts';

const now = 1_795_000_000_000;

test('accepts a bound nonce once, for its operator, within a minute', () => {
  const nonces = new BoundNonces(randomBytes(32));
  const nonce = nonces.issue('ada', now, randomBytes(32));
  expect(nonce).toHaveLength(32);
  expect(nonces.isLive('ada', nonce, now + 59_999)).toBe(true);
  expect(nonces.isLive('bob', nonce, now)).toBe(false);
  expect(nonces.isLive('ada', nonce, now + 60_000)).toBe(false);
  // The nonce was issued in the future.
  expect(nonces.isLive('ada', nonce, now - 1)).toBe(false);
  expect(new BoundNonces(randomBytes(32)).isLive('ada', nonce, now)).toBe(false);
  nonces.markAnswered(nonce, now);
  expect(nonces.isLive('ada', nonce, now)).toBe(false);
  // The nonce stays used after other nonces are used.
  const later = nonces.issue('ada', now + 30_000, randomBytes(32));
  nonces.markAnswered(later, now + 30_000);
  expect(nonces.isLive('ada', nonce, now + 30_000)).toBe(false);
});

test('refuses a bound nonce if any bit has changed', () => {
  const nonces = new BoundNonces(randomBytes(32));
  const nonce = nonces.issue('ada', now, randomBytes(32));
  for (let bit = 0; bit < 256; bit++) {
    const changed = Buffer.from(nonce);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(nonces.isLive('ada', changed, now)).toBe(false);
  }
  expect(nonces.isLive('ada', nonce.subarray(1), now)).toBe(false);
});

test('limits unbound nonces separately for each network', () => {
  const nonces = new UnboundNonces();
  const own = randomBytes(32);
  nonces.add('ada', 'home', own, now);
  for (let at = 0; at < 1000; at++) nonces.add('ada', `network ${at % 20}`, randomBytes(32), now);
  const candidates = nonces.candidates('ada', 'home', now);
  expect(candidates[0]).toBe(own);
  expect(candidates).toHaveLength(64);
  expect(nonces.candidates('ada', 'elsewhere', now)).toContain(own);
  nonces.markAnswered('ada', own, now);
  expect(nonces.candidates('ada', 'home', now)).not.toContain(own);
  expect(nonces.candidates('ada', 'home', now + 60_000)).toEqual([]);
});
