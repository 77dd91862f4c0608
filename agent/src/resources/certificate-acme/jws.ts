import { createHmac, generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';

/** Signs ACME requests (RFC 8555) with an ECDSA key (ES256, RFC 7518). */

const base64url = (data: string | Buffer): string => Buffer.from(data as string).toString('base64url');

/** Creates an account key. */
export const newAccountKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** Returns the public key with its members in the order of RFC 7638. */
function jwkOf(key: KeyObject): { crv: string; kty: string; x: string; y: string } {
  const { crv = '', kty = '', x = '', y = '' } = key.export({ format: 'jwk' });
  return { crv, kty, x, y };
}

/**
 * Returns the proof that this machine controls a name: the token of the challenge and the thumbprint of the key (RFC
 * 7638).
 */
export const keyAuthorization = (token: string, key: KeyObject): string =>
  `${token}.${hash('sha256', JSON.stringify(jwkOf(key)), 'base64url')}`;

/** Returns the value of the TXT record of a dns-01 challenge. */
export const recordValue = (token: string, key: KeyObject): string =>
  hash('sha256', keyAuthorization(token, key), 'base64url');

/**
 * Returns the signed body of a request.
 * @param account URL of the account; null for requests that contain the key itself
 * @param payload null for a request without a payload, which only reads
 */
export function signedRequest(
  { key, account, nonce, url }: { key: KeyObject; account: string | null; nonce: string; url: string },
  payload: object | null,
): string {
  const who = account === null ? { jwk: jwkOf(key) } : { kid: account };
  const header = base64url(JSON.stringify({ alg: 'ES256', nonce, url, ...who }));
  const content = payload === null ? '' : base64url(JSON.stringify(payload));
  const signature = sign('sha256', Buffer.from(`${header}.${content}`), { key, dsaEncoding: 'ieee-p1363' });
  return JSON.stringify({ protected: header, payload: content, signature: base64url(signature) });
}

/** An account that was opened with the authority in advance. */
export interface ExternalAccount {
  keyId: string;
  /** As base64url. */
  hmacKey: string;
}

/**
 * Returns the proof that the holder of the account key may use an external account: the public key, signed with the
 * HMAC key (RFC 8555, section 7.3.4).
 * @param url the URL of the request that contains the proof
 */
export function externalBinding({ keyId, hmacKey }: ExternalAccount, key: KeyObject, url: string): object {
  const header = base64url(JSON.stringify({ alg: 'HS256', kid: keyId, url }));
  const payload = base64url(JSON.stringify(jwkOf(key)));
  const signature = createHmac('sha256', Buffer.from(hmacKey, 'base64url')).update(`${header}.${payload}`);
  return { protected: header, payload, signature: signature.digest('base64url') };
}
