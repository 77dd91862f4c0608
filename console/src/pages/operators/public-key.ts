/**
 * Length of the part of an OpenSSH key's blob that precedes the key: key type and key length (RFC 4253, section 6.6;
 * RFC 8709).
 */
const sshHead = '0000000b7373682d6564323535313900000020';

/**
 * Parses a public key in the form of 64 hexadecimal characters or an OpenSSH line.
 * @returns 64 lower-case hexadecimal characters, or null if the text is neither
 */
export function readPublicKey(text: string): string | null {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return trimmed.toLowerCase();
  const base64 = /^ssh-ed25519 ([A-Za-z0-9+/]+={0,2})(\s|$)/.exec(trimmed)?.[1];
  if (base64 === undefined) return null;
  let blob: string;
  try {
    blob = atob(base64);
  } catch {
    return null;
  }
  const hex = Array.from(blob, (character) => character.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  return hex.startsWith(sshHead) && hex.length === sshHead.length + 64 ? hex.slice(sshHead.length) : null;
}
