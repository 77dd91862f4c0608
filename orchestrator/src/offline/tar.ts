/**
 * Reads and writes tar archives in the ustar format, with the GNU encoding for sizes over 8 GiB. Supports only regular
 * files of known length.
 */

const block = 512;

export interface TarEntry {
  readonly name: string;
  readonly size: number;
}

/** The data is not a complete, valid archive. */
export class BadArchive extends Error {}

/** @param seconds modification time in Unix seconds */
export function tarHeader({ name, size }: TarEntry, seconds: number): Buffer {
  if (Buffer.byteLength(name) > 99) throw new Error(`${name} is too long for the name of an archive entry`);
  const header = Buffer.alloc(block);
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  header.write(name, 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (size < 8 ** 11) octal(size, 124, 12);
  else {
    header.writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(size), 128);
  }
  octal(seconds, 136, 12);
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write('        ', 148, 'latin1');
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

/** Returns the padding after a file's content. @param size size of the content in bytes */
export const tarPadding = (size: number): Buffer => Buffer.alloc((block - (size % block)) % block);

export const tarEnd = (): Buffer => Buffer.alloc(2 * block);

function checksumOf(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < block; at++) sum += at >= 148 && at < 156 ? 32 : header.readUInt8(at);
  return sum;
}

function readHeader(header: Buffer): TarEntry {
  const text = (at: number, length: number) => header.toString('utf8', at, at + length).replace(/\0[\s\S]*$/, '');
  const octal = (at: number, length: number) => {
    const digits = text(at, length).trim();
    return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
  };
  if (octal(148, 8) !== checksumOf(header)) throw new BadArchive('it is damaged: an entry has a wrong checksum');
  const size = header.readUInt8(124) === 0x80 ? Number(header.readBigUInt64BE(128)) : octal(124, 12);
  const name = text(0, 100);
  if (!Number.isSafeInteger(size) || size < 0 || name === '')
    throw new BadArchive('it is damaged: an entry has an invalid header');
  return { name, size };
}

class Source {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#pieces = bytes[Symbol.asyncIterator]();
  }

  /** @returns at least one byte and at most `max` bytes; empty at the end of the stream */
  async take(max: number): Promise<Buffer> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#pieces.next();
      if (done) return this.#rest;
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const taken = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(max);
    return taken;
  }

  /** @returns `length` bytes, or fewer at the end of the stream */
  async takeAll(length: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = length; left > 0; ) {
      const piece = await this.take(left);
      if (piece.length === 0) break;
      pieces.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(pieces);
  }
}

/**
 * Iterates over the entries of an archive. The caller must read the content of an entry before it advances to the next
 * entry; unread content is skipped.
 * @throws BadArchive if the archive is truncated or damaged
 */
export async function* readTar(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<TarEntry & { content: AsyncIterable<Buffer> }> {
  const source = new Source(bytes);
  for (let first = true; ; first = false) {
    const header = await source.takeAll(block);
    if (header.length < block) throw new BadArchive(first ? 'it is empty or not an archive' : 'it is truncated');
    if (header.every((byte) => byte === 0)) return;
    const { name, size } = readHeader(header);
    let left = size;
    async function* content(): AsyncGenerator<Buffer> {
      while (left > 0) {
        const piece = await source.take(left);
        if (piece.length === 0) throw new BadArchive(`it is truncated within ${name}`);
        left -= piece.length;
        yield piece;
      }
    }
    yield { name, size, content: { [Symbol.asyncIterator]: content } };
    for await (const _ of content());
    const padding = (block - (size % block)) % block;
    if ((await source.takeAll(padding)).length < padding) throw new BadArchive(`it is truncated after ${name}`);
  }
}
