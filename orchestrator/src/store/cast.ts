import { isUtf8 } from 'node:buffer';

/**
 * Transcripts as asciicast v2, which terminal players read: a header, then one JSON line per event, with the seconds
 * since the start. Muster adds an event kind that players ignore: a `b` event after an `o` event contains the exact
 * bytes of that output in base64. Such an event is written only if the bytes are not valid UTF-8.
 */

export interface CastHeader {
  readonly width: number;
  readonly height: number;
  /** Time at which the terminal was opened, in Unix seconds. */
  readonly timestamp: number;
  readonly title: string;
  readonly env: Readonly<Record<string, string>>;
  readonly muster: {
    readonly session_id: string;
    readonly operator_id: string;
    readonly operator: string;
    readonly node_id: string;
    readonly agent: string;
    readonly user: string;
  };
}

export const headerLine = (header: CastHeader): string => `${JSON.stringify({ version: 2, ...header })}\n`;

/** Maximum number of bytes per event. Longer output is split. */
export const maxEventBytes = 64 * 1024;
/**
 * Maximum total length of an event's `o` and `b` lines, in bytes. A control character takes six bytes, and invalid
 * UTF-8 is repeated in base64.
 */
export const maxLineBytes = 8 * maxEventBytes;

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const line = (at: number, kind: string, data: string): string =>
  `[${Math.round(at) / 1000},"${kind}",${JSON.stringify(data)}]\n`;

/**
 * Formats an output event's lines.
 * @param at milliseconds since the start
 * @param bytes at most {@link maxEventBytes}
 */
export function outputLines(at: number, bytes: Uint8Array): string {
  const buffer = asBuffer(bytes);
  const shown = line(at, 'o', buffer.toString('utf8'));
  return isUtf8(buffer) ? shown : shown + line(at, 'b', buffer.toString('base64'));
}

/** Formats an input event's line. Replaces invalid UTF-8. */
export const inputLine = (at: number, bytes: Uint8Array): string => line(at, 'i', asBuffer(bytes).toString('utf8'));

export const resizeLine = (at: number, cols: number, rows: number): string => line(at, 'r', `${cols}x${rows}`);

/** @returns the length of an incomplete UTF-8 character at the end; at most three bytes */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let count = 1; count <= 3 && count <= bytes.length; count++) {
    const byte = bytes[bytes.length - count] as number;
    // A continuation byte. The first byte of the character precedes it.
    if (byte >= 0x80 && byte < 0xc0) continue;
    const length =
      byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
    return length > count ? count : 0;
  }
  return 0;
}

/** Reports whether an incomplete line begins a `b` event. */
export const beginsExact = (cut: string): boolean => /^\[[\d.]+,"b/.test(cut);

/** An event that a replay needs. */
export type CastEvent =
  | { readonly kind: 'output'; readonly text: string }
  /** Replaces the preceding output event's text. */
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number };

/** @returns null for a header, for other events, and for invalid lines */
export function readCastLine(text: string): CastEvent | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(read)) return null;
  const [, kind, data] = read as unknown[];
  if (typeof data !== 'string') return null;
  if (kind === 'o') return { kind: 'output', text: data };
  if (kind === 'b') return { kind: 'exact', bytes: Buffer.from(data, 'base64') };
  if (kind !== 'r') return null;
  const [, cols, rows] = /^(\d{1,4})x(\d{1,4})$/.exec(data) ?? [];
  return Number(cols) >= 1 && Number(rows) >= 1 ? { kind: 'resize', cols: Number(cols), rows: Number(rows) } : null;
}

/**
 * Converts the lines of a transcript to bytes and size changes. Returns an output only after the next line, which may
 * contain its exact bytes.
 */
export class CastReplay {
  #waiting: string | null = null;

  /** @returns the output bytes and size changes that this line completes, in chronological order */
  take(lineText: string): (Uint8Array | { readonly cols: number; readonly rows: number })[] {
    const event = readCastLine(lineText);
    if (event?.kind === 'exact') {
      const follows = this.#waiting !== null;
      this.#waiting = null;
      return follows ? [event.bytes] : [];
    }
    const before = this.end();
    if (event?.kind === 'output') this.#waiting = event.text;
    if (event?.kind === 'resize') return [...before, { cols: event.cols, rows: event.rows }];
    return before;
  }

  /**
   * Returns the last output.
   * @param cut the last line if it is incomplete; if it begins a `b` event, the output is dropped
   */
  end(cut = ''): Uint8Array[] {
    const text = this.#waiting;
    this.#waiting = null;
    return text === null || text === '' || beginsExact(cut) ? [] : [Buffer.from(text)];
  }
}
