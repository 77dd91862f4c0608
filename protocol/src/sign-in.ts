import { signedContexts } from './signed-contexts.ts';

/**
 * The bytes that an operator's key signs to sign in. They name the server as the client sees it, so that a server
 * cannot relay a challenge from another server: the other server refuses signatures that do not name it.
 */

export interface SignInBinding {
  /** The server as the client sees it, from {@link serverOfKey} or {@link serverOfOrigin}. */
  server: string;
  /** 64 lower-case hexadecimal characters. */
  publicKey: string;
  /** 64 lower-case hexadecimal characters. */
  nonce: string;
}

/** `tls:` and 64 hexadecimal characters, or `origin:` and an origin. */
export const serverPattern = /^(?:tls:[0-9a-f]{64}|origin:https?:\/\/[a-z0-9.:_[\]-]{1,262})$/;

/**
 * Identifies a server by its TLS key.
 * @param digest SHA-256 of the SubjectPublicKeyInfo (DER), lower-case hexadecimal
 */
export const serverOfKey = (digest: string): string => `tls:${digest}`;

/** Identifies a server by its address. @param origin in the form of `URL.origin` and `location.origin` */
export const serverOfOrigin = (origin: string): string => `origin:${origin}`;

/**
 * Returns the bytes to sign: four lines, each terminated by a newline.
 * @throws RangeError if a part is malformed
 */
export function signInBytes({ server, publicKey, nonce }: SignInBinding): Uint8Array<ArrayBuffer> {
  if (!serverPattern.test(server)) throw new RangeError(`${JSON.stringify(server)} is not a server`);
  for (const part of [publicKey, nonce])
    if (!/^[0-9a-f]{64}$/.test(part))
      throw new RangeError('the key and the nonce must each have 64 hexadecimal characters');
  return new TextEncoder().encode(`${signedContexts.signIn}${server}\n${publicKey}\n${nonce}\n`);
}
