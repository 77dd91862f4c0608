import { TextLines } from './text-lines.ts';

/** A recording as it is read, asciicast v2 with the exact bytes of what is not UTF-8 (`b`). Pure. */

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** What was shown, as text or as bytes, or a change of size. */
export type RecordedEvent = string | Uint8Array | Size;

export const isSize = (event: RecordedEvent): event is Size => typeof event === 'object' && 'cols' in event;

const usual: Size = { cols: 80, rows: 24 };
/** No line that the orchestrator writes is longer; what is, is none of its. */
const longestLine = 1024 * 1024;

export class Recording {
  /** Of the first screen. */
  size: Size = usual;
  /** Seconds since the opening, of each event; never falling. */
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

  /** Takes the next piece of the file, wherever it was cut. */
  feed(piece: Uint8Array): void {
    this.#take(this.#decoder.decode(piece, { stream: true }));
  }

  /** The file ends here: of a session that was cut off, perhaps within a line. */
  end(): void {
    this.#take(`${this.#decoder.decode()}\n`);
    this.text.end();
  }

  /** How many events there are until then. @param at seconds, that moment included */
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
    if (this.#rest.length > longestLine) this.#rest = '';
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
      this.size = sizeOf(width, height) ?? usual;
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

/** @returns null for what no terminal is */
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
