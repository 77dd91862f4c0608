import { isUtf8 } from 'node:buffer';

/**
 * Transcripts as asciicast v2, which terminal players read: a header, then a line of JSON for each event, with the
 * seconds since the opening. Of ours there is one kind of event, which players pass over: `b` behind an `o` holds in
 * base64 the very bytes that the text of that `o` stands for, where they are not UTF-8.
 */

export interface CastHeader {
  readonly width: number;
  readonly height: number;
  /** Unix seconds of the opening. */
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

/** The most bytes of one event: what is shown in a rush comes in several. */
export const longestPiece = 64 * 1024;
/** No line that was written here is longer: control characters take six bytes each, and invalid ones base64 besides. */
export const longestLine = 8 * longestPiece;

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const line = (at: number, kind: string, data: string): string =>
  `[${Math.round(at) / 1000},"${kind}",${JSON.stringify(data)}]\n`;

/**
 * The lines of what was shown.
 * @param at milliseconds since the opening
 * @param bytes at most {@link longestPiece}
 */
export function outputLines(at: number, bytes: Uint8Array): string {
  const buffer = asBuffer(bytes);
  const shown = line(at, 'o', buffer.toString('utf8'));
  return isUtf8(buffer) ? shown : shown + line(at, 'b', buffer.toString('base64'));
}

/** The line of what was typed; what is not UTF-8 in it is replaced. */
export const inputLine = (at: number, bytes: Uint8Array): string => line(at, 'i', asBuffer(bytes).toString('utf8'));

export const resizeLine = (at: number, cols: number, rows: number): string => line(at, 'r', `${cols}x${rows}`);

/** How many bytes at the end, at most three, are the beginning of a character that may be completed by what follows. */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let count = 1; count <= 3 && count <= bytes.length; count++) {
    const byte = bytes[bytes.length - count] as number;
    // Inside a character: its first byte lies before.
    if (byte >= 0x80 && byte < 0xc0) continue;
    const length =
      byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xc2 && byte < 0xe0 ? 2 : 1;
    return length > count ? count : 0;
  }
  return 0;
}

/** Whether a line that was not written to its end was to be one of the very bytes. */
export const beginsExact = (cut: string): boolean => /^\[[\d.]+,"b/.test(cut);

/** What a line holds that is of use to whoever replays it. */
export type CastEvent =
  | { readonly kind: 'output'; readonly text: string }
  /** Instead of the text of the output right before. */
  | { readonly kind: 'exact'; readonly bytes: Uint8Array }
  | { readonly kind: 'resize'; readonly cols: number; readonly rows: number };

/** @returns null for a header, for events of other kinds, and for what is no event */
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
 * What a transcript showed: bytes as they came, and changes of size between them. An output waits for the next line,
 * which may have it exactly.
 */
export class CastReplay {
  #waiting: string | null = null;

  /** @returns what is certain now, in order */
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

  /** @param cut the beginning of a line that was not written as a whole: if it was to have the bytes, none were shown */
  end(cut = ''): Uint8Array[] {
    const text = this.#waiting;
    this.#waiting = null;
    return text === null || text === '' || beginsExact(cut) ? [] : [Buffer.from(text)];
  }
}
