/** Reads and writes the ASN.1 values in DER-encoded keys (X.690): tag, length, content. */

export interface DerValue {
  readonly tag: number;
  readonly content: Uint8Array;
}

export const derTags = { integer: 0x02, octets: 0x04, oid: 0x06, sequence: 0x30 } as const;

/**
 * Reads consecutive values.
 * @throws RangeError if a value is truncated
 */
export function derValues(bytes: Uint8Array): DerValue[] {
  const values: DerValue[] = [];
  let at = 0;
  while (at < bytes.length) {
    const tag = bytes[at] as number;
    let length = bytes[at + 1] ?? 0xff;
    at += 2;
    if (length >= 0x80) {
      const count = length & 0x7f;
      // A length needs at most three bytes, because a key is at most a few kilobytes long.
      if (count === 0 || count > 3) throw new RangeError('invalid length');
      length = 0;
      for (let index = 0; index < count; index++) length = length * 256 + (bytes[at++] ?? Number.NaN);
    }
    if (!(at + length <= bytes.length)) throw new RangeError('truncated');
    values.push({ tag, content: bytes.subarray(at, at + length) });
    at += length;
  }
  return values;
}

/** Returns the content of the value at an index. @throws RangeError if the value has a different tag */
export function derContent(values: readonly DerValue[], index: number, tag: number): Uint8Array {
  const value = values[index];
  if (value?.tag !== tag) throw new RangeError('unexpected tag');
  return value.content;
}

/** Returns the integer at an index. @throws RangeError if it is not a nonnegative safe integer */
export function derNumber(values: readonly DerValue[], index: number): number {
  const number = derContent(values, index, derTags.integer).reduce((sum, byte) => sum * 256 + byte, 0);
  if (!Number.isSafeInteger(number)) throw new RangeError('the integer is too large');
  return number;
}

/**
 * Encodes a value.
 * @param content at most 65,535 bytes in total
 */
export function derValue(tag: number, ...content: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const length = content.reduce((sum, part) => sum + part.length, 0);
  if (length > 0xffff) throw new RangeError('too long');
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  const value = new Uint8Array(head.length + length);
  value.set(head);
  let at = head.length;
  for (const part of content) {
    value.set(part, at);
    at += part.length;
  }
  return value;
}

export const derSequence = (...content: readonly Uint8Array[]): Uint8Array<ArrayBuffer> =>
  derValue(derTags.sequence, ...content);

/**
 * Encodes an integer.
 * @param value from 0 to 2^31 - 1
 */
export function derInteger(value: number): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  for (let rest = value; rest > 0 || bytes.length === 0; rest >>= 8) bytes.unshift(rest & 0xff);
  // Adds a leading zero byte, because the first bit is the sign.
  if ((bytes[0] as number) >= 0x80) bytes.unshift(0);
  return derValue(derTags.integer, Uint8Array.from(bytes));
}

/** Object identifiers for encrypted PKCS#8 (RFC 8018, RFC 7914), in hexadecimal. */
export const derOids = {
  pbes2: '2a864886f70d01050d',
  pbkdf2: '2a864886f70d01050c',
  scrypt: '2b06010401da47040b',
  aes128Cbc: '608648016503040102',
  aes192Cbc: '608648016503040116',
  aes256Cbc: '60864801650304012a',
} as const;

/** The PKCS#8 prefix of a 32-byte Ed25519 seed (RFC 8410, section 7). */
const ed25519Prefix = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32);

/** Encodes an Ed25519 seed as PKCS#8. The caller must overwrite the result after use. */
export function ed25519Pkcs8(seed: Uint8Array): Uint8Array<ArrayBuffer> {
  const wrapped = new Uint8Array(ed25519Prefix.length + seed.length);
  wrapped.set(ed25519Prefix);
  wrapped.set(seed, ed25519Prefix.length);
  return wrapped;
}
