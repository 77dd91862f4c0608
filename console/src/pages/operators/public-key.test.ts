import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { readPublicKey } from './public-key.ts';

const { publicKey } = generateKeyPairSync('ed25519');
const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const line = (key: Buffer, kind = 'ssh-ed25519') => {
  const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  return `ssh-ed25519 ${Buffer.concat([field(Buffer.from(kind)), field(key)]).toString('base64')}`;
};

test('reads a key from hexadecimal text and from an OpenSSH line', () => {
  expect(readPublicKey(` ${raw.toString('hex').toUpperCase()}\n`)).toBe(raw.toString('hex'));
  expect(readPublicKey(line(raw))).toBe(raw.toString('hex'));
  expect(readPublicKey(`${line(raw)} ada@laptop\n`)).toBe(raw.toString('hex'));
});

test('returns null for other text and key types', () => {
  expect(readPublicKey('')).toBeNull();
  expect(readPublicKey(raw.toString('hex').slice(1))).toBeNull();
  expect(readPublicKey(line(raw.subarray(1)))).toBeNull();
  expect(readPublicKey(line(raw, 'ssh-ed25518'))).toBeNull();
  expect(readPublicKey('ssh-ed25519 A')).toBeNull();
  expect(readPublicKey('ssh-rsa AAAAB3NzaC1yc2E=')).toBeNull();
  expect(readPublicKey('-----BEGIN PRIVATE KEY-----')).toBeNull();
});
