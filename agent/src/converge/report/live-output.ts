import { limits, type OutputProgress } from '@muster/protocol/wire';

/**
 * Live output of the running program. Only the newest part is kept, whether or not anyone watches; the final report of
 * the operation contains everything that may be shown.
 */

/** The newest output of the running program, stored only in memory. Losing it is harmless. */
export interface OutputTail {
  /**
   * Removes and returns the output since the last call.
   * @returns null if there is none
   */
  take(): OutputProgress | null;
}

type Stream = 'stdout' | 'stderr';
export interface OutputSource {
  operation_id: string;
  resource: string;
}

/** Maximum size of both streams together as JSON text, in bytes. The rest of the frame is for names. */
const textBytes = limits.outputProgressBytes - 1024 - 384;
/**
 * Maximum size of a name as JSON text, in bytes. Output of a resource with a longer name is not streamed, because the
 * frame has no room for it.
 */
const maxNameBytes = 1024;

export class LiveOutput implements OutputTail {
  readonly #onOutput: () => void;
  #source: OutputSource | null = null;
  #streams: Record<Stream, Tail> = { stdout: new Tail(), stderr: new Tail() };

  constructor(onOutput: () => void) {
    this.#onOutput = onOutput;
  }

  /** Adds output. Discards earlier output from another program. */
  add(source: OutputSource, stream: Stream, piece: Buffer): void {
    if (this.#source?.operation_id !== source.operation_id || this.#source.resource !== source.resource) {
      this.#source = source;
      this.#streams = { stdout: new Tail(), stderr: new Tail() };
    }
    if (Buffer.byteLength(JSON.stringify(source.resource)) > maxNameBytes) return;
    this.#streams[stream].add(piece);
    this.#onOutput();
  }

  /** Discards the output of a finished operation. */
  forget(operationId: string): void {
    if (this.#source?.operation_id !== operationId) return;
    this.#source = null;
    this.#streams = { stdout: new Tail(), stderr: new Tail() };
  }

  take(): OutputProgress | null {
    if (this.#source === null) return null;
    const { stdout, stderr } = this.#streams;
    const maxBytes = stdout.isEmpty || stderr.isEmpty ? textBytes : textBytes / 2;
    const pieces = { stdout: stdout.take(maxBytes), stderr: stderr.take(maxBytes) };
    if (pieces.stdout === null && pieces.stderr === null) return null;
    return { type: 'output_progress', ...this.#source, ...pieces };
  }
}

/** Keeps only the end of a stream of any length. */
class Tail {
  /** Offset of the first kept byte in the stream. */
  #from = 0;
  #tail: Buffer = Buffer.alloc(0);

  /** Whether no complete character is available. */
  get isEmpty(): boolean {
    return completeLength(this.#tail) === 0;
  }

  add(piece: Buffer): void {
    // Copies the bytes, so that a few bytes do not keep a large buffer in memory.
    const last = piece.subarray(-textBytes);
    const all = Buffer.concat([this.#tail, last]);
    const tail = all.subarray(-textBytes);
    this.#from += this.#tail.length + piece.length - tail.length;
    this.#tail = tail;
  }

  /**
   * Removes all complete characters, and returns the newest ones that fit.
   * @param maxBytes maximum size of the text as JSON
   */
  take(maxBytes: number): { from: number; to: number; text: string } | null {
    const end = completeLength(this.#tail);
    let start = this.#from === 0 ? 0 : restOfCharacter(this.#tail);
    let text = this.#tail.subarray(start, end).toString('utf8');
    for (;;) {
      const bytes = Buffer.byteLength(JSON.stringify(text));
      if (bytes <= maxBytes) break;
      // Control characters take six bytes in JSON and other characters fewer, so one round may not be enough.
      start = Math.min(end, start + Math.max(1, Math.ceil(((end - start) * (bytes - maxBytes)) / bytes)));
      start += restOfCharacter(this.#tail.subarray(start, end));
      text = this.#tail.subarray(start, end).toString('utf8');
    }
    if (text === '') return null;
    const piece = { from: this.#from + start, to: this.#from + end, text };
    this.#from += end;
    this.#tail = Buffer.from(this.#tail.subarray(end));
    return piece;
  }
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;

/** Returns the number of leading bytes that continue an earlier character. */
function restOfCharacter(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && at < bytes.length && isContinuation(bytes[at] as number)) at++;
  return at;
}

/** Returns the number of bytes before an incomplete last character. */
function completeLength(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
