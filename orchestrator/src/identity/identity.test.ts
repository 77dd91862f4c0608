import { generateKeyPairSync, sign, verify, X509Certificate } from 'node:crypto';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadApiCertificate } from './api-certificate.ts';
import { idOfRawKey, isUsablePublicKey, publicKeyFromRaw, rawPublicKey } from './ed25519-key.ts';
import { loadIdentity } from './identity.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'muster-identity-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const mode = async (path: string) => (await stat(path)).mode & 0o777;

describe('identity', () => {
  test('creates the orchestrator key once, and a certificate for it', async () => {
    const dataDir = join(dir, 'data');
    const first = await loadIdentity(dataDir);
    const second = await loadIdentity(dataDir);
    expect(second.publicKey).toEqual(first.publicKey);
    expect(await mode(dataDir)).toBe(0o700);
    expect(await mode(join(dataDir, 'identity.key'))).toBe(0o600);
    const certificate = new X509Certificate(first.certificatePem);
    expect(rawPublicKey(certificate.publicKey)).toEqual(first.publicKey);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  test('refuses a directory or key that other users can access, and prints the command to fix it', async () => {
    await loadIdentity(dir);
    await chmod(dir, 0o750);
    await expect(loadIdentity(dir)).rejects.toThrow(
      `${dir} has mode 0750, which gives other users access to keys; run: chmod 0700 ${dir}`,
    );
    await chmod(dir, 0o700);
    await chmod(join(dir, 'identity.key'), 0o640);
    await expect(loadIdentity(dir)).rejects.toThrow('chmod 0600');
  });
});

describe('the API certificate', () => {
  test('renews the certificate with the same key if a host is missing or it expires soon', async () => {
    const first = await loadApiCertificate(dir, null);
    expect(await loadApiCertificate(dir, null)).toEqual(first);
    const wider = await loadApiCertificate(dir, 'muster.example');
    expect(wider.certificate).not.toBe(first.certificate);
    expect(wider.key).toBe(first.key);
    const certificate = new X509Certificate(wider.certificate);
    expect(certificate.checkHost('muster.example')).toBe('muster.example');
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    // Reuses a certificate with more hosts than requested, so that clients need not trust a new certificate.
    expect(await loadApiCertificate(dir, null)).toEqual(wider);
    const later = Date.now() + 800 * 86_400_000;
    expect((await loadApiCertificate(dir, null, later)).certificate).not.toBe(wider.certificate);
    expect(await mode(join(dir, 'api.crt'))).toBe(0o600);
  });
});

describe('public keys', () => {
  const littleEndian = (value: bigint, sign = 0): Uint8Array => {
    const bytes = new Uint8Array(32);
    for (let i = 0; i < 32; i++) bytes[i] = Number((value >> BigInt(8 * i)) & 0xffn);
    bytes[31]! |= sign << 7;
    return bytes;
  };
  const prime = 2n ** 255n - 19n;

  test('accepts generated public keys', () => {
    const pair = generateKeyPairSync('ed25519');
    const raw = rawPublicKey(pair.privateKey)!;
    expect(isUsablePublicKey(raw)).toBe(true);
    const message = Buffer.from('m');
    expect(verify(null, message, publicKeyFromRaw(raw), sign(null, message, pair.privateKey))).toBe(true);
  });

  test('computes the same key ID as the protocol package', async () => {
    const raw = rawPublicKey(generateKeyPairSync('ed25519').publicKey)!;
    expect(idOfRawKey(raw)).toBe(await idOfKey(raw));
  });

  test('refuses every small-order public key, with either sign', () => {
    // The encodings of the eight small-order points, from published test vectors for RFC 8032.
    const published = [
      '0000000000000000000000000000000000000000000000000000000000000000',
      '0100000000000000000000000000000000000000000000000000000000000000',
      'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    ];
    for (const hex of published)
      for (const sign of [0, 0x80]) {
        const bytes = Buffer.from(hex, 'hex');
        bytes[31]! |= sign;
        expect(isUsablePublicKey(bytes), bytes.toString('hex')).toBe(false);
      }
  });

  test('refuses a public key whose y coordinate is not reduced or whose length is not 32 bytes', () => {
    for (let above = 0n; above < 19n; above++) expect(isUsablePublicKey(littleEndian(prime + above))).toBe(false);
    expect(isUsablePublicKey(littleEndian(prime + 3n, 1))).toBe(false);
    expect(isUsablePublicKey(new Uint8Array(31))).toBe(false);
    expect(isUsablePublicKey(new Uint8Array(33).fill(7))).toBe(false);
  });
});
