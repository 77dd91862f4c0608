const stringLengthBytes = 4;

/**
 * Returns the type inside an SSH public key, such as `ssh-ed25519`; null if the text is not a base64-encoded public
 * key. The key consists of at least two strings, each preceded by its length, and the first string is the type (RFC
 * 4253, section 6.6; RFC 4251, section 5).
 */
export function sshKeyType(text: string): string | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || text.length % 4 !== 0 || btoa(atob(text)) !== text) return null;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const strings: Uint8Array[] = [];
  let at = 0;
  while (at + stringLengthBytes <= bytes.length) {
    const start = at + stringLengthBytes;
    at = start + view.getUint32(at);
    strings.push(bytes.subarray(start, at));
  }
  if (at !== bytes.length || strings.length < 2) return null;
  const type = new TextDecoder('latin1').decode(strings[0]);
  return /^[a-z0-9@.-]{1,64}$/.test(type) ? type : null;
}
