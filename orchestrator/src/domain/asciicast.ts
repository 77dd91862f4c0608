import type { TranscriptMark } from '../store/transcripts.ts';

/** The most bytes of one event: what was shown in a rush comes in several. */
const longestEvent = 64 * 1024;

/**
 * A transcript in asciicast v2, the format that terminal players read: a header, then one line for each piece of output
 * or change of size. Bytes that no mark counts (what was under way when the process was killed) come last.
 * @param openedAt Unix seconds
 */
export async function* asciicast(
  openedAt: number,
  raw: AsyncIterable<Uint8Array>,
  marks: AsyncIterable<TranscriptMark>,
): AsyncGenerator<string> {
  const source = marks[Symbol.asyncIterator]();
  // A character may lie across two pieces.
  const decoder = new TextDecoder('utf-8');
  const bytes = new ByteReader(raw);
  try {
    let mark = await source.next();
    const size = !mark.done && 'cols' in mark.value ? mark.value : null;
    const header = { version: 2, width: size?.cols ?? 80, height: size?.rows ?? 24, timestamp: openedAt };
    yield `${JSON.stringify(header)}\n`;
    if (size !== null) mark = await source.next();
    let at = 0;
    for (; !mark.done; mark = await source.next()) {
      // Times never go back, whatever the file says.
      at = Math.max(at, mark.value.at);
      if ('cols' in mark.value) {
        yield event(at, 'r', `${mark.value.cols}x${mark.value.rows}`);
        continue;
      }
      for (let left = mark.value.bytes; left > 0; ) {
        const piece = await bytes.take(Math.min(left, longestEvent));
        if (piece === null) break;
        left -= piece.length;
        const text = decoder.decode(piece, { stream: true });
        if (text !== '') yield event(at, 'o', text);
      }
    }
    for (let piece = await bytes.take(longestEvent); piece !== null; piece = await bytes.take(longestEvent)) {
      const text = decoder.decode(piece, { stream: true });
      if (text !== '') yield event(at, 'o', text);
    }
    const rest = decoder.decode();
    if (rest !== '') yield event(at, 'o', rest);
  } finally {
    await source.return?.();
    await bytes.close();
  }
}

const event = (at: number, kind: 'o' | 'r', data: string): string => `${JSON.stringify([at / 1000, kind, data])}\n`;

/** Takes bytes from pieces of any length, never more at once than one piece has. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array(0);

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#source = pieces[Symbol.asyncIterator]();
  }

  /** Up to so many of the next bytes; null at the end. */
  async take(most: number): Promise<Uint8Array | null> {
    while (this.#piece.length === 0) {
      const next = await this.#source.next();
      if (next.done) return null;
      this.#piece = next.value;
    }
    const taken = this.#piece.subarray(0, most);
    this.#piece = this.#piece.subarray(taken.length);
    return taken;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
