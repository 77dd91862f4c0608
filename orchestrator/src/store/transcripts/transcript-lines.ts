import { beginsExact, CastReplay, longestLine } from '../cast.ts';

/**
 * The bytes that a transcript showed, as they came. Whatever the file holds, no more of it is in memory than a piece
 * and a line: lines that are no events are passed over, and so is what is longer than any line.
 */
export async function* shownBytes(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const replay = new CastReplay();
  const lines = new Lines();
  for await (const piece of pieces)
    for (const line of lines.split(piece))
      for (const part of replay.take(line)) if (part instanceof Uint8Array && part.length > 0) yield part;
  yield* replay.end(lines.rest);
}

/**
 * How much of the end of a transcript is whole events: up to the line that was not written to its end. If that was to
 * have the very bytes of the output before it, neither was shown.
 */
export function wholeLines(bytes: Uint8Array): number {
  const end = bytes.lastIndexOf(0x0a) + 1;
  if (!beginsExact(Buffer.from(bytes.subarray(end)).toString('latin1'))) return end;
  return bytes.subarray(0, Math.max(0, end - 1)).lastIndexOf(0x0a) + 1;
}

/** Lines of text from pieces of bytes. */
class Lines {
  #begun: Uint8Array[] = [];
  #length = 0;

  *split(piece: Uint8Array): Generator<string> {
    let from = 0;
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, from)) {
      this.#keep(piece.subarray(from, end));
      from = end + 1;
      const line = this.rest;
      this.#begun = [];
      this.#length = 0;
      yield line;
    }
    this.#keep(piece.subarray(from));
  }

  /** What came after the last end of a line; nothing when that is too long for a line. */
  get rest(): string {
    return this.#length > longestLine ? '' : Buffer.concat(this.#begun).toString('utf8');
  }

  #keep(bytes: Uint8Array): void {
    this.#length += bytes.length;
    if (this.#length > longestLine) this.#begun = [];
    // A copy: whoever reads a file may use its memory again.
    else if (bytes.length > 0) this.#begun.push(bytes.slice());
  }
}
