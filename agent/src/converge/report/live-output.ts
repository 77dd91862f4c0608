import { limits, type OutputProgress } from '@muster/protocol/wire';

/**
 * What the program that is running prints, for those who watch. Only the newest of it is kept, however much it prints
 * and whether or not anybody is there to be told; all of it that may be told is in the report at its end.
 */

/** The newest output of the running program. It is kept in memory only: losing it does no harm. */
export interface OutputTail {
  /**
   * Takes the output since the last call.
   * @returns null when there is none
   */
  take(): OutputProgress | null;
}

type Stream = 'stdout' | 'stderr';
export interface OutputSource {
  operation_id: string;
  resource: string;
}

/** Bytes of JSON text for both streams together: the rest of the frame is for the names around them. */
const textBytes = limits.outputProgressBytes - 1024 - 384;
/** Bytes of JSON text. What has a longer name has no room in the frame, and nobody is shown what it prints. */
const longestName = 1024;

export class LiveOutput implements OutputTail {
  readonly #onOutput: () => void;
  #source: OutputSource | null = null;
  #streams: Record<Stream, Tail> = { stdout: new Tail(), stderr: new Tail() };

  /** @param onOutput called when there is something to take */
  constructor(onOutput: () => void) {
    this.#onOutput = onOutput;
  }

  /** What another program printed before is given up. */
  add(source: OutputSource, stream: Stream, piece: Buffer): void {
    if (this.#source?.operation_id !== source.operation_id || this.#source.resource !== source.resource) {
      this.#source = source;
      this.#streams = { stdout: new Tail(), stderr: new Tail() };
    }
    if (Buffer.byteLength(JSON.stringify(source.resource)) > longestName) return;
    this.#streams[stream].add(piece);
    this.#onOutput();
  }

  /** An operation has ended: there is nobody left to watch it. */
  forget(operationId: string): void {
    if (this.#source?.operation_id !== operationId) return;
    this.#source = null;
    this.#streams = { stdout: new Tail(), stderr: new Tail() };
  }

  take(): OutputProgress | null {
    if (this.#source === null) return null;
    const { stdout, stderr } = this.#streams;
    const room = stdout.isEmpty || stderr.isEmpty ? textBytes : textBytes / 2;
    const pieces = { stdout: stdout.take(room), stderr: stderr.take(room) };
    if (pieces.stdout === null && pieces.stderr === null) return null;
    return { type: 'output_progress', ...this.#source, ...pieces };
  }
}

/** The end of a stream of any length. */
class Tail {
  /** Where in the stream the kept bytes begin. */
  #from = 0;
  #kept: Buffer = Buffer.alloc(0);

  /** Nothing to take; the first bytes of a character are nothing yet. */
  get isEmpty(): boolean {
    return wholeCharacters(this.#kept) === 0;
  }

  add(piece: Buffer): void {
    // Copied: what came is part of something larger, and not kept for a few bytes of it.
    const last = piece.subarray(-textBytes);
    const all = Buffer.concat([this.#kept, last]);
    const kept = all.subarray(-textBytes);
    this.#from += this.#kept.length + piece.length - kept.length;
    this.#kept = kept;
  }

  /** @param room bytes that the text may come to as JSON */
  take(room: number): { from: number; to: number; text: string } | null {
    const end = wholeCharacters(this.#kept);
    let start = this.#from === 0 ? 0 : restOfCharacter(this.#kept);
    let text = this.#kept.subarray(start, end).toString('utf8');
    for (;;) {
      const bytes = Buffer.byteLength(JSON.stringify(text));
      if (bytes <= room) break;
      // Control characters take six bytes, others one: what is left comes closer each time.
      start = Math.min(end, start + Math.max(1, Math.ceil(((end - start) * (bytes - room)) / bytes)));
      start += restOfCharacter(this.#kept.subarray(start, end));
      text = this.#kept.subarray(start, end).toString('utf8');
    }
    if (text === '') return null;
    const piece = { from: this.#from + start, to: this.#from + end, text };
    this.#from += end;
    this.#kept = Buffer.from(this.#kept.subarray(end));
    return piece;
  }
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;

/** How many bytes at the beginning belong to a character that began before. */
function restOfCharacter(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && at < bytes.length && isContinuation(bytes[at] as number)) at++;
  return at;
}

/** How many bytes there are up to where the last character that is not whole begins. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
