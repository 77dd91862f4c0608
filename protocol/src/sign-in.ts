import { signedContexts } from './signed-contexts.ts';

/**
 * The bytes that an operator's key signs to sign in. They name the server, so that the signature is valid at one
 * orchestrator only: a server that relays the challenge of another one gets a signature that names itself, which the
 * other one refuses.
 */

export interface SignInBinding {
  /** The server that the client sees: see {@link serverOfKey} and {@link serverOfOrigin}. */
  server: string;
  /** 64 lower-case hexadecimal characters. */
  publicKey: string;
  /** 64 lower-case hexadecimal characters. */
  nonce: string;
}

/** `tls:` and 64 hexadecimal characters, or `origin:` and an origin. */
export const serverPattern = /^(?:tls:[0-9a-f]{64}|origin:https?:\/\/[a-z0-9.:_[\]-]{1,262})$/;

/** A server by its TLS key. @param digest SHA-256 of the SubjectPublicKeyInfo (DER), lower-case hexadecimal */
export const serverOfKey = (digest: string): string => `tls:${digest}`;

/** A server by its address. @param origin as `URL.origin` and `location.origin` have it */
export const serverOfOrigin = (origin: string): string => `origin:${origin}`;

/**
 * The bytes to sign: four lines, each ended by a newline.
 * @throws RangeError when a part is malformed
 */
export function signInBytes({ server, publicKey, nonce }: SignInBinding): Uint8Array<ArrayBuffer> {
  if (!serverPattern.test(server)) throw new RangeError(`${JSON.stringify(server)} is not a server`);
  for (const part of [publicKey, nonce])
    if (!/^[0-9a-f]{64}$/.test(part)) throw new RangeError('the key and the nonce are 64 hexadecimal characters');
  return new TextEncoder().encode(`${signedContexts.signIn}${server}\n${publicKey}\n${nonce}\n`);
}
