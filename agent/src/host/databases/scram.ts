import { createHmac, hash, pbkdf2Sync, timingSafeEqual } from 'node:crypto';

/** Password verifiers as PostgreSQL stores them, according to RFC 5802 and RFC 7677. */

const form = /^SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/=]{1,200})\$([A-Za-z0-9+/=]{44}):([A-Za-z0-9+/=]{44})$/;
/** Default of `scram_iterations`. */
const defaultIterations = 4096;
/** A stored verifier with more iterations is treated as different, because checking it would take seconds. */
const maximumIterations = 100_000;
/** Length of a new salt in bytes, as in PostgreSQL. */
export const saltLength = 16;

function keysOf(password: string, salt: Buffer, iterations: number): { stored: Buffer; server: Buffer } {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest();
  return { stored: hash('sha256', hmac('Client Key'), 'buffer'), server: hmac('Server Key') };
}

export function scramVerifier(password: string, salt: Buffer): string {
  const { stored, server } = keysOf(password, salt, defaultIterations);
  const [saltText, storedText, serverText] = [salt, stored, server].map((bytes) => bytes.toString('base64'));
  return `SCRAM-SHA-256$${defaultIterations}:${saltText}$${storedText}:${serverText}`;
}

/**
 * Reports whether a stored verifier belongs to this password. Returns false for an MD5 hash, so that the hash is
 * replaced.
 */
export function isVerifierOf(password: string, verifier: string | null): boolean {
  const [, count, salt = '', stored = ''] = form.exec(verifier ?? '') ?? [];
  const iterations = Number(count);
  if (count === undefined || iterations < 1 || iterations > maximumIterations) return false;
  const bytes = Buffer.from(stored, 'base64');
  const mine = keysOf(password, Buffer.from(salt, 'base64'), iterations).stored;
  return bytes.length === mine.length && timingSafeEqual(bytes, mine);
}
