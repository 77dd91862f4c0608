/** Identifiers that agents, clients, and the orchestrator compute. */

/**
 * Returns the ID of an agent or operator: the first 16 bytes of the SHA-256 of its first Ed25519 public key, in
 * lower-case hex.
 * @param publicKey 32 bytes
 */
export async function idOfKey(publicKey: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array(publicKey));
  return [...new Uint8Array(digest, 0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

const idShape = /^[0-9a-f]{32}$/;
/** Reports whether a string has the form of a node ID or operator ID. */
export const isKeyId = (text: string): boolean => idShape.test(text);

const nameShape = /^\p{L}[\p{L}\p{Nd}_-]{0,63}$/u;
/**
 * Reports whether a string is a valid agent or operator name: 1 to 64 letters, digits, `-`, or `_`, beginning with a
 * letter, and not in the form of an ID.
 */
export const isName = (text: string): boolean => nameShape.test(text) && !isKeyId(text);

const ulidShape = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
export const isUlid = (text: string): boolean => ulidShape.test(text);
