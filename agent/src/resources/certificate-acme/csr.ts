import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** Creates certificate signing requests (PKCS#10, RFC 2986) in DER. */

export const keyTypes = ['ecdsa-p256', 'ecdsa-p384', 'rsa-2048', 'rsa-4096'] as const;
export type KeyType = (typeof keyTypes)[number];

export function newPrivateKey(type: KeyType): KeyObject {
  if (type === 'ecdsa-p256' || type === 'ecdsa-p384')
    return generateKeyPairSync('ec', { namedCurve: type === 'ecdsa-p256' ? 'P-256' : 'P-384' }).privateKey;
  return generateKeyPairSync('rsa', { modulusLength: type === 'rsa-2048' ? 2048 : 4096 }).privateKey;
}

/** Returns the type of a key, or null if the type is not supported. */
export function typeOfKey(key: KeyObject): KeyType | null {
  const { namedCurve, modulusLength } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType === 'ec')
    return namedCurve === 'prime256v1' ? 'ecdsa-p256' : namedCurve === 'secp384r1' ? 'ecdsa-p384' : null;
  const type = `rsa-${modulusLength}`;
  return key.asymmetricKeyType === 'rsa' ? (keyTypes.find((known) => known === type) ?? null) : null;
}

const tags = { integer: 0x02, bits: 0x03, octets: 0x04, null: 0x05, oid: 0x06, sequence: 0x30, set: 0x31 };

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

/** Object identifiers in DER, without their tag. */
const oids = {
  extensionRequest: '2a864886f70d01090e',
  subjectAltName: '551d11',
  ecdsaWithSha256: '2a8648ce3d040302',
  ecdsaWithSha384: '2a8648ce3d040303',
  rsaWithSha256: '2a864886f70d01010b',
};
const oid = (name: keyof typeof oids): Buffer => der(tags.oid, Buffer.from(oids[name], 'hex'));

/**
 * Creates a signing request for host names, without a subject.
 * @returns the request in DER
 */
export function signingRequest(domains: readonly string[], key: KeyObject, publicKey: KeyObject): Buffer {
  const names = domains.map((domain) => der(0x82, Buffer.from(domain, 'latin1')));
  const extension = der(tags.sequence, oid('subjectAltName'), der(tags.octets, der(tags.sequence, ...names)));
  const attribute = der(tags.sequence, oid('extensionRequest'), der(tags.set, der(tags.sequence, extension)));
  const info = der(
    tags.sequence,
    der(tags.integer, Buffer.from([0])),
    der(tags.sequence),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa0, attribute),
  );
  const type = typeOfKey(key);
  const isRsa = key.asymmetricKeyType === 'rsa';
  const name = isRsa ? 'rsaWithSha256' : type === 'ecdsa-p384' ? 'ecdsaWithSha384' : 'ecdsaWithSha256';
  const algorithm = der(tags.sequence, oid(name), ...(isRsa ? [der(tags.null)] : []));
  const signature = sign(name === 'ecdsaWithSha384' ? 'sha384' : 'sha256', info, key);
  return der(tags.sequence, info, algorithm, der(tags.bits, Buffer.from([0]), signature));
}
