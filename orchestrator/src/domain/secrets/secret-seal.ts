import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { SecretKey } from '../../identity/secret-keys.ts';

/** Encrypts individual values. A sealed value can only be opened with the same key, name, and version. */

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

export interface SealedFor {
  readonly name: string;
  readonly version: number;
}

const associated = (keyId: string, { name, version }: SealedFor): Buffer =>
  Buffer.from(JSON.stringify(['muster secret', 1, keyId, name, version]));

/**
 * Encrypts a value.
 * @param nonce 12 random bytes, never used before with this key
 * @returns base64
 */
export function sealValue(key: SecretKey, what: SealedFor, value: string, nonce: Buffer): string {
  if (nonce.length !== nonceBytes) throw new Error(`the nonce must have ${nonceBytes} bytes`);
  const cipher = createCipheriv(algorithm, key.key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(associated(key.id, what));
  const sealed = Buffer.concat([nonce, cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return sealed.toString('base64');
}

/** Decrypts a value. Returns null if it was sealed with another key, name, or version, or was altered. */
export function openValue(key: SecretKey, what: SealedFor, sealed: string): string | null {
  const bytes = Buffer.from(sealed, 'base64');
  if (bytes.length < nonceBytes + tagBytes) return null;
  const decipher = createDecipheriv(algorithm, key.key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(associated(key.id, what));
  decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
  try {
    const text = decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}
