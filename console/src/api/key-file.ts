/** Why a file cannot be used to sign in, and what to do. */
export class KeyFileError extends Error {
  /** It is locked: ask for the passphrase and read it again. */
  readonly needsPassphrase: boolean;
  constructor(message: string, needsPassphrase = false) {
    super(message);
    this.name = 'KeyFileError';
    this.needsPassphrase = needsPassphrase;
  }
}

// PKCS#8 of an Ed25519 key is this, then the 32 bytes of the seed (RFC 8410, section 7).
const pkcs8Head = '302e020100300506032b657004220420';

/**
 * Reads an operator's key as `muster operator init` and `openssl genpkey -algorithm ed25519` write it, or its seed as 64
 * hexadecimal characters.
 * @returns the 32 bytes of the seed; the caller overwrites them when done
 * @throws KeyFileError
 */
export async function readKeyFile(text: string, _passphrase: string | null): Promise<Uint8Array> {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return bytesOf(trimmed);
  const body = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(text)?.[1];
  if (body === undefined) throw new KeyFileError('This is not a private key in a form that the console reads.');
  const hex = Array.from(atob(body.replace(/\s/g, '')), (c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join('');
  if (!hex.startsWith(pkcs8Head) || hex.length !== pkcs8Head.length + 64)
    throw new KeyFileError('This is a private key, but not an Ed25519 one.');
  return bytesOf(hex.slice(pkcs8Head.length));
}

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
