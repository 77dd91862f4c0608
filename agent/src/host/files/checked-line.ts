import { crc32 } from 'node:zlib';

/**
 * Encodes a line with a checksum: eight hexadecimal digits of CRC-32, a space, JSON, and a newline. Readers drop a line
 * whose checksum does not match.
 */
export function checkedLine(value: unknown): Buffer {
  const json = JSON.stringify(value);
  return Buffer.from(`${checksumOf(json)} ${json}\n`, 'utf8');
}

/**
 * @param line without its newline
 * @returns the JSON; null if the line is damaged
 */
export function jsonOf(line: Buffer): string | null {
  const json = line.subarray(9);
  return line.length >= 10 && line.toString('latin1', 0, 9) === `${checksumOf(json)} ` ? json.toString('utf8') : null;
}

const checksumOf = (json: string | Buffer): string => crc32(json).toString(16).padStart(8, '0');
