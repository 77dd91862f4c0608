import { TextLines } from './text-lines.ts';

/** Parses recordings in asciicast v2, extended with `b` events for output that is not valid UTF-8. */

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Output as text or bytes, or a new terminal size. */
export type RecordedEvent = string | Uint8Array | Size;

export const isSize = (event: RecordedEvent): event is Size => typeof event === 'object' && 'cols' in event;

const defaultSize: Size = { cols: 80, rows: 24 };
/** Maximum length in characters of a line that the orchestrator writes. */
const maxLineLength = 1024 * 1024;

export class Recording {
  /** Initial terminal size. */
  size: Size = defaultSize;
  /** Time of each event in seconds since the recording began, ascending. */
  readonly times: number[] = [];
  readonly events: RecordedEvent[] = [];
  readonly text = new TextLines();
  #decoder = new TextDecoder();
  #rest = '';
  #first = true;

  /** Seconds. */
  get duration(): number {
    return this.times.at(-1) ?? 0;
  }

  /** Parses the next chunk of the file. A chunk may end anywhere. */
  feed(piece: Uint8Array): void {
    this.#take(this.#decoder.decode(piece, { stream: true }));
  }

  /**
   * Call this function at the end of the file. If the terminal session was interrupted, the last line is incomplete.
   */
  end(): void {
    this.#take(`${this.#decoder.decode()}\n`);
    this.text.end();
  }

  /**
   * Returns the number of events up to a time.
   * @param at seconds, inclusive
   */
  countAt(at: number): number {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.times[middle] as number) <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > maxLineLength) this.#rest = '';
    for (const line of lines) if (line !== '') this.#line(line);
  }

  #line(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return;
    }
    if (this.#first) {
      this.#first = false;
      const { width, height } = (value ?? {}) as { width?: unknown; height?: unknown };
      this.size = sizeOf(width, height) ?? defaultSize;
      if (!Array.isArray(value)) return;
    }
    if (!Array.isArray(value)) return;
    const [given, kind, data] = value as unknown[];
    if (typeof given !== 'number' || typeof data !== 'string') return;
    const at = Math.max(given, this.duration);
    if (kind === 'o') {
      this.#add(at, data);
      this.text.feed(at, data);
    } else if (kind === 'b' && typeof this.events.at(-1) === 'string') {
      const bytes = bytesOf(data);
      if (bytes !== null) this.events[this.events.length - 1] = bytes;
    } else if (kind === 'r') {
      const [, cols, rows] = /^(\d{1,4})x(\d{1,4})$/.exec(data) ?? [];
      const size = sizeOf(Number(cols), Number(rows));
      if (size !== null) this.#add(at, size);
    }
  }

  #add(at: number, event: RecordedEvent): void {
    this.times.push(at);
    this.events.push(event);
  }
}

/** Returns null if the terminal size is invalid. */
function sizeOf(cols: unknown, rows: unknown): Size | null {
  const isLength = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1000;
  return isLength(cols) && isLength(rows) ? { cols, rows } : null;
}

function bytesOf(base64: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}
