import { crc32 } from 'node:zlib';

/**
 * A line of a file that tells its own damage: eight hexadecimal digits of CRC-32, a space, JSON, a newline. It is the unit
 * that is there or is not.
 */
export function checkedLine(value: unknown): Buffer {
  const json = JSON.stringify(value);
  return Buffer.from(`${sumOf(json)} ${json}\n`, 'utf8');
}

/**
 * @param line without its newline
 * @returns its JSON; null when it is not as it was written
 */
export function jsonOf(line: Buffer): string | null {
  const json = line.subarray(9);
  return line.length >= 10 && line.toString('latin1', 0, 9) === `${sumOf(json)} ` ? json.toString('utf8') : null;
}

const sumOf = (json: string | Buffer): string => crc32(json).toString(16).padStart(8, '0');
