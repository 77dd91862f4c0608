/**
 * Reads the fields of the OpenSSH key format, which begin with their length (`string` in RFC 4251, section 5).
 * @throws RangeError if a field is truncated
 */
export class SshFields {
  readonly #bytes: Uint8Array;
  #at = 0;
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }
  take(length: number): Uint8Array {
    const to = this.#at + length;
    if (to > this.#bytes.length) throw new RangeError('truncated');
    const taken = this.#bytes.subarray(this.#at, to);
    this.#at = to;
    return taken;
  }
  number(): number {
    return this.take(4).reduce((sum, byte) => sum * 256 + byte, 0);
  }
  bytes(): Uint8Array {
    return this.take(this.number());
  }
  /** Reads a field as Latin-1 text. @returns the first 256 bytes of the field */
  text(): string {
    return String.fromCharCode(...this.bytes().subarray(0, 256));
  }
  get rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }
}

const magic = 'openssh-key-v1\0';

/** The part of a private key file that precedes the private half (PROTOCOL.key of OpenSSH). */
export interface SshKeyHead {
  /** Cipher name; `none` for an unencrypted key. */
  readonly cipher: string;
  readonly kdf: string;
  readonly kdfOptions: Uint8Array;
  readonly publicBlob: Uint8Array;
  /** Reader positioned at the private half. */
  readonly fields: SshFields;
}

/**
 * Reads the part of a private key file that precedes the private half.
 * @param bytes the decoded text between the first and the last line of the file
 * @returns null if the file is not an OpenSSH key or contains several keys
 * @throws RangeError if the file is truncated
 */
export function readSshKeyHead(bytes: Uint8Array): SshKeyHead | null {
  const fields = new SshFields(bytes);
  if (String.fromCharCode(...fields.take(magic.length)) !== magic) return null;
  const cipher = fields.text();
  const kdf = fields.text();
  const kdfOptions = fields.bytes();
  if (fields.number() !== 1) return null;
  return { cipher, kdf, kdfOptions, publicBlob: fields.bytes(), fields };
}
