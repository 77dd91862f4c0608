import type { Fault } from '../../errors.ts';

export const moduleLimits = {
  bytes: 2 * 1024 * 1024,
  /** Nesting depth of mappings and lists, with expanded aliases. */
  depth: 32,
  /** Number of mappings, lists, and values, without keys. An alias counts each time it is used. */
  nodes: 10_000,
  /** Number of characters in all text. An alias counts each time it is used. */
  expandedCharacters: 4 * 1024 * 1024,
  /** Maximum number of errors to report per module. An additional error contains the number of omitted errors. */
  faults: 500,
} as const;

/** Converts offsets to lines and columns. */
export class Positions {
  readonly #text: string;
  #lineStarts: number[] | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Converts an offset to a position.
   * @param offset UTF-16 units from the start of the text
   * @returns line and column, both from 1; the column counts UTF-16 units
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

/**
 * Decodes a module. Refuses invalid UTF-8, control characters, and text that exceeds the size limit.
 * @param noun name of the source in messages
 */
export function decodeSource(source: string | Uint8Array, noun = 'the module'): DecodedSource {
  // Each UTF-16 code unit takes at least one byte in UTF-8, so the limit applies to the length in both encodings.
  if (source.length > moduleLimits.bytes) return tooLarge(noun);
  let text: string;
  if (typeof source === 'string') {
    if (!source.isWellFormed()) return refusal(`${noun} is not Unicode text: it contains a lone surrogate`);
    if (new TextEncoder().encode(source).length > moduleLimits.bytes) return tooLarge(noun);
    text = source;
  } else {
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(source);
    } catch {
      return refusal(`${noun} is not UTF-8: save it in that encoding`, firstInvalid(source));
    }
  }
  if (text.startsWith('\uFEFF')) text = text.slice(1);
  const control = text.search(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\uFFFE\uFFFF]/);
  if (control !== -1) {
    const code = text.charCodeAt(control).toString(16).toUpperCase().padStart(4, '0');
    return refusal(`the control character U+${code} is not allowed in YAML`, new Positions(text).at(control));
  }
  return { ok: true, text };
}

const tooLarge = (noun: string) => refusal(`${noun} is larger than ${moduleLimits.bytes / 1024 / 1024} MiB`);

/**
 * Returns the position of the first byte that is not UTF-8. Uses bisection, because the decoder does not report the
 * position of the error.
 */
function firstInvalid(bytes: Uint8Array): { line: number; column: number } {
  const decodes = (length: number): boolean => {
    try {
      // In stream mode, an incomplete sequence at the end is not an error.
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
