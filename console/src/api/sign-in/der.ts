/** Reads ASN.1 values in DER, as keys are written in: tag, length, content. Pure. */

export interface DerValue {
  readonly tag: number;
  readonly content: Uint8Array;
}

export const derTags = { integer: 0x02, octets: 0x04, oid: 0x06, sequence: 0x30 } as const;

/**
 * The values that stand one behind the other.
 * @throws RangeError when they are not whole
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
      // A key has kilobytes at the most; none of these lengths takes more than three bytes.
      if (count === 0 || count > 3) throw new RangeError('a length that no key has');
      length = 0;
      for (let index = 0; index < count; index++) length = length * 256 + (bytes[at++] ?? Number.NaN);
    }
    if (!(at + length <= bytes.length)) throw new RangeError('it is cut off');
    values.push({ tag, content: bytes.subarray(at, at + length) });
    at += length;
  }
  return values;
}

/** What is in the value at a place. @throws RangeError when another kind is there */
export function derContent(values: readonly DerValue[], index: number, tag: number): Uint8Array {
  const value = values[index];
  if (value?.tag !== tag) throw new RangeError('another value was expected');
  return value.content;
}

/** A number that is not negative, and that fits. @throws RangeError */
export function derNumber(values: readonly DerValue[], index: number): number {
  const number = derContent(values, index, derTags.integer).reduce((sum, byte) => sum * 256 + byte, 0);
  if (!Number.isSafeInteger(number)) throw new RangeError('a number that is too large');
  return number;
}

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** @param hex whole bytes of it */
export const bytesOfHex = (hex: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** @returns null for what is no base64 */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text.replace(/\s/g, '')), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
