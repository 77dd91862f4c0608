import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SignInNonces } from './sign-in-nonces.ts';

const now = 1_795_000_000_000;
const none = () => false;
const hex = ({ bytes }: { bytes: Buffer }) => bytes.toString('hex');

test('reads a bound nonce for its operator, within a minute', () => {
  const key = randomBytes(32);
  const nonce = new SignInNonces(key).issueBound('ada', now, randomBytes(32));
  // Another process with the same key.
  const nonces = new SignInNonces(key);
  expect(nonce).toHaveLength(32);
  expect(nonces.readBound('ada', nonce, now + 59_999)).toEqual({ bytes: nonce, issuedAt: now });
  expect(nonces.readBound('bob', nonce, now)).toBeNull();
  expect(nonces.readBound('ada', nonce, now + 60_000)).toBeNull();
  // The issuer's clock may be ahead.
  expect(nonces.readBound('ada', nonce, now - 60_000)).not.toBeNull();
  expect(nonces.readBound('ada', nonce, now - 60_001)).toBeNull();
  expect(new SignInNonces(randomBytes(32)).readBound('ada', nonce, now)).toBeNull();
});

test('refuses a bound nonce if any bit has changed', () => {
  const nonces = new SignInNonces(randomBytes(32));
  const nonce = nonces.issueBound('ada', now, randomBytes(32));
  for (let bit = 0; bit < 256; bit++) {
    const changed = Buffer.from(nonce);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(nonces.readBound('ada', changed, now)).toBeNull();
  }
  expect(nonces.readBound('ada', nonce.subarray(1), now)).toBeNull();
});

test('accepts an unbound nonce of its operator for 50 to 60 seconds, even in a process whose clock is behind', () => {
  const key = randomBytes(32);
  const nonces = new SignInNonces(key);
  for (const into of [0, 4_321, 9_999]) {
    const issued = now + into;
    const text = nonces.issueUnbound('ada', issued, 3, none).toString('hex');
    const isLive = (at: number, operator = 'ada') =>
      [...new SignInNonces(key).unbound(operator, at, none)].map(hex).includes(text);
    for (const at of [-1, 0, 50_000]) expect(isLive(issued + at), `${at} ms later`).toBe(true);
    expect(isLive(issued + 60_000)).toBe(false);
    expect(isLive(issued - 20_000)).toBe(false);
    expect(isLive(issued, 'bob')).toBe(false);
  }
});

test('issues different unbound nonces to concurrent requests, and replaces answered ones', () => {
  const nonces = new SignInNonces(randomBytes(32));
  const answered = new Set<string>();
  const issue = (turn: number) => nonces.issueUnbound('ada', now, turn, (nonce) => answered.has(nonce)).toString('hex');
  const first = Array.from({ length: 8 }, (_, turn) => issue(turn));
  expect(new Set(first).size).toBe(8);
  for (let at = 0; at < 100; at++) {
    const nonce = issue(at);
    expect(answered.has(nonce)).toBe(false);
    answered.add(nonce);
  }
  // The number of signature checks per response does not increase.
  expect([...nonces.unbound('ada', now, (nonce) => answered.has(nonce))]).toHaveLength(56);
});
