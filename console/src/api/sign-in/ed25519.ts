import { getPublicKey, hashes, sign } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { ed25519Pkcs8 } from '../../../../client/src/der.ts';

/**
 * Ed25519 with WebCrypto, or in pure JavaScript if WebCrypto is unavailable: in old browsers and on pages served over
 * plain HTTP.
 */

hashes.sha512 = sha512;

export const ed25519PublicKey = (seed: Uint8Array): Uint8Array => getPublicKey(seed);

/** Returns the 64-byte signature. */
export async function signEd25519(seed: Uint8Array, message: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const wrapped = ed25519Pkcs8(seed);
  try {
    const key = await crypto.subtle.importKey('pkcs8', wrapped, 'Ed25519', false, ['sign']);
    return new Uint8Array(await crypto.subtle.sign('Ed25519', key, message));
  } catch {
    return sign(message, seed);
  } finally {
    wrapped.fill(0);
  }
}
