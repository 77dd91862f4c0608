import type { Fault } from '../../errors.ts';

/** What a module may be, at most. */
export const moduleLimits = {
  bytes: 2 * 1024 * 1024,
  /** Mappings and lists inside each other, aliases followed. */
  depth: 32,
  /** Mappings, lists and values, keys not counted, aliases counted as often as they are used. */
  nodes: 10_000,
  /** Characters of all text, aliases counted as often as they are used. */
  expandedCharacters: 4 * 1024 * 1024,
  /** Reported of one module; a last one says how many more there are. */
  faults: 500,
} as const;

/** Turns offsets into lines and columns. */
export class Positions {
  readonly #text: string;
  #lineStarts: number[] | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * @param offset UTF-16 units from the start
   * @returns line and column, both from 1, the column in UTF-16 units
   */
  at(offset: number): { line: number; column: number } {
    this.#lineStarts ??= lineStarts(this.#text);
    const starts = this.#lineStarts;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] as number) + 1 };
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let next = text.indexOf('\n'); next !== -1; next = text.indexOf('\n', next + 1)) starts.push(next + 1);
  return starts;
}

export type DecodedSource = { ok: true; text: string } | { ok: false; faults: Fault[] };

const refusal = (message: string, position: { line: number; column: number } = { line: 1, column: 1 }) => ({
  ok: false as const,
  faults: [{ path: '', message, ...position }],
});

/** Bytes or text as it came in, to text that is worth parsing: UTF-8, printable, not too large. */
export function decodeSource(source: string | Uint8Array): DecodedSource {
  // Every UTF-16 unit is at least one byte of UTF-8, so this is safe before anything is decoded or counted.
  if (source.length > moduleLimits.bytes) return tooLarge();
  let text: string;
  if (typeof source === 'string') {
    if (!source.isWellFormed()) return refusal('the module is not Unicode text: it holds half of a surrogate pair');
    if (new TextEncoder().encode(source).length > moduleLimits.bytes) return tooLarge();
    text = source;
  } else {
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(source);
    } catch {
      return refusal('the module is not UTF-8: save it in that encoding', firstInvalid(source));
    }
  }
  if (text.startsWith('\uFEFF')) text = text.slice(1);
  const control = text.search(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\uFFFE\uFFFF]/);
  if (control !== -1) {
    const code = text.charCodeAt(control).toString(16).toUpperCase().padStart(4, '0');
    return refusal(`the control character U+${code} cannot stand in YAML`, new Positions(text).at(control));
  }
  return { ok: true, text };
}

const tooLarge = () => refusal(`the module is larger than ${moduleLimits.bytes / 1024 / 1024} MiB`);

/** Where bytes stop being UTF-8. Found by halving: decoding reports that there is a fault, not where. */
function firstInvalid(bytes: Uint8Array): { line: number; column: number } {
  const decodes = (length: number): boolean => {
    try {
      // In stream mode a sequence that is merely cut off at the end is no fault.
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, length), { stream: true });
      return true;
    } catch {
      return false;
    }
  };
  let valid = 0;
  let invalid = bytes.length + 1;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (middle <= bytes.length && decodes(middle)) valid = middle;
    else invalid = middle;
  }
  const before = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, valid), { stream: true });
  return new Positions(before).at(before.length);
}
