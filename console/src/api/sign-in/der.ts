/** Reads the ASN.1 values of keys in DER (X.690): tag, length, content. */

export interface DerValue {
  readonly tag: number;
  readonly content: Uint8Array;
}

export const derTags = { integer: 0x02, octets: 0x04, oid: 0x06, sequence: 0x30 } as const;

/**
 * Reads consecutive values.
 * @throws RangeError if one is truncated
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
      // A key has at most some kilobytes, so a length never needs more than three bytes.
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

/** The content of the value at an index. @throws RangeError if its tag differs */
export function derContent(values: readonly DerValue[], index: number, tag: number): Uint8Array {
  const value = values[index];
  if (value?.tag !== tag) throw new RangeError('unexpected tag');
  return value.content;
}

/** A nonnegative safe integer. @throws RangeError */
export function derNumber(values: readonly DerValue[], index: number): number {
  const number = derContent(values, index, derTags.integer).reduce((sum, byte) => sum * 256 + byte, 0);
  if (!Number.isSafeInteger(number)) throw new RangeError('number too large');
  return number;
}

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** @param hex an even number of hexadecimal characters */
export const bytesOfHex = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** @returns null if it is not base64 */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text.replace(/\s/g, '')), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
