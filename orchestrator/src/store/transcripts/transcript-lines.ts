import { beginsExact, CastReplay, maxLineBytes } from '../cast.ts';

/**
 * Reads the output bytes from a transcript. Skips invalid and overlong lines, so that at most one chunk and one line
 * are in memory.
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
 * @returns the length of the complete events in the last part of a transcript. If the incomplete last line begins a `b`
 *   event, this excludes the output before it.
 */
export function completeLines(bytes: Uint8Array): number {
  const end = bytes.lastIndexOf(0x0a) + 1;
  if (!beginsExact(Buffer.from(bytes.subarray(end)).toString('latin1'))) return end;
  return bytes.subarray(0, Math.max(0, end - 1)).lastIndexOf(0x0a) + 1;
}

/** Splits chunks of bytes into lines of text. */
class Lines {
  #unfinished: Uint8Array[] = [];
  #length = 0;

  *split(piece: Uint8Array): Generator<string> {
    let from = 0;
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, from)) {
      this.#keep(piece.subarray(from, end));
      from = end + 1;
      const line = this.rest;
      this.#unfinished = [];
      this.#length = 0;
      yield line;
    }
    this.#keep(piece.subarray(from));
  }

  /** The text after the last newline; empty if it exceeds the maximum line length. */
  get rest(): string {
    return this.#length > maxLineBytes ? '' : Buffer.concat(this.#unfinished).toString('utf8');
  }

  #keep(bytes: Uint8Array): void {
    this.#length += bytes.length;
    if (this.#length > maxLineBytes) this.#unfinished = [];
    // Copies the bytes, because a reader may reuse its memory.
    else if (bytes.length > 0) this.#unfinished.push(bytes.slice());
  }
}
