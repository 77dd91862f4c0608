import 'reflect-metadata';
import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

/** Key and certificate of a simulated MeshCentral agent. */
export interface MeshIdentity {
  name: string;
  key: KeyObject;
  /** Self-signed certificate in DER. */
  certificate: Buffer;
}

const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-384' };
const dayMs = 86_400_000;

/**
 * Creates identities with different RSA keys, as MeshCentral requires. All keys have the same primes and differ in their
 * exponents, because 1,000 pairs of primes would take a minute of CPU time. Only for a bench: each key reveals all others.
 */
export async function createMeshIdentities(count: number): Promise<MeshIdentity[]> {
  const nextKey = keySeries();
  const identities: MeshIdentity[] = [];
  for (let n = 0; n < count; n++) {
    const jwk = nextKey();
    const name = `mesh-agent-${n}`;
    const publicJwk = { kty: 'RSA', n: jwk.n!, e: jwk.e! };
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: '01',
      name: [{ CN: [name] }],
      notBefore: new Date(Date.now() - dayMs),
      notAfter: new Date(Date.now() + dayMs),
      signingAlgorithm: algorithm,
      keys: {
        privateKey: await webcrypto.subtle.importKey('jwk', jwk, algorithm, true, ['sign']),
        publicKey: await webcrypto.subtle.importKey('jwk', publicJwk, algorithm, true, ['verify']),
      },
    });
    const key = createPrivateKey({ key: jwk, format: 'jwk' });
    identities.push({ name, key, certificate: Buffer.from(certificate.rawData) });
  }
  return identities;
}

/** Returns a function that returns a different key on each call, with the public exponents 65539, 65541, and so on. */
function keySeries(): () => JsonWebKey {
  const first = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const [p, q] = [numberIn(first.p!), numberIn(first.q!)];
  const order = (p - 1n) * (q - 1n);
  let e = 65_537n;
  return () => {
    for (;;) {
      e += 2n;
      const d = inverse(e, order);
      if (d !== null)
        return { ...first, e: textOf(e), d: textOf(d), dp: textOf(d % (p - 1n)), dq: textOf(d % (q - 1n)) };
    }
  };
}

/** Returns the inverse of `a` modulo `m` by the extended Euclidean algorithm; null if they have a common factor. */
function inverse(a: bigint, m: bigint): bigint | null {
  let [r, next] = [m, a % m];
  let [s, nextS] = [0n, 1n];
  while (next > 0n) {
    const quotient = r / next;
    [r, next] = [next, r - quotient * next];
    [s, nextS] = [nextS, s - quotient * nextS];
  }
  return r === 1n ? ((s % m) + m) % m : null;
}

const numberIn = (base64url: string): bigint => BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`);
function textOf(number: bigint): string {
  const hex = number.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url');
}
