/**
 * Splits program output into lines of styled text. Removes all escape sequences except colors. Keeps other control
 * characters; the view shows them as codes.
 */

export type SpanTone = 'good' | 'warn' | 'bad' | 'info' | 'muted' | null;

export interface Span {
  readonly text: string;
  readonly tone: SpanTone;
  readonly bold: boolean;
}

export type OutputLine = readonly Span[];

/**
 * CSI sequences, OSC and other string sequences, and two-character escapes (ECMA-48). An unfinished sequence extends to
 * the end.
 */
const sequences = /\x1b\[([0-?]*)[ -/]*([@-~]|$)|\x1b[P\]X^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?/g;

const tones: Readonly<Record<number, SpanTone>> = {
  ...{ 30: 'muted', 31: 'bad', 32: 'good', 33: 'warn', 34: 'info', 35: 'info', 36: 'info', 37: null, 39: null },
  ...{ 90: 'muted', 91: 'bad', 92: 'good', 93: 'warn', 94: 'info', 95: 'info', 96: 'info', 97: null },
};

interface Style {
  tone: SpanTone;
  bold: boolean;
}

function restyle(style: Style, parameters: string): Style {
  let { tone, bold } = style;
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number;
    if (code === 0) [tone, bold] = [null, false];
    else if (code === 1) bold = true;
    else if (code === 2) tone = 'muted';
    else if (code === 22) bold = false;
    // 256-color and RGB codes are ignored. Their parameters must be skipped, so that they are not read as codes.
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4;
    else if (code in tones) tone = tones[code] as SpanTone;
  }
  return { tone, bold };
}

export function outputLines(text: string): OutputLine[] {
  const lines: Span[][] = [[]];
  let style: Style = { tone: null, bold: false };
  const add = (plain: string) => {
    const parts = plain.split(/\r*\n/);
    parts.forEach((part, index) => {
      if (index > 0) lines.push([]);
      // Progress bars overwrite their line after a carriage return. Only the last state is kept.
      const states = part.split('\r');
      const last = states.findLastIndex((state) => state !== '');
      if (last === -1) return;
      const line = lines.at(-1) as Span[];
      if (last > 0) line.length = 0;
      line.push({ text: states[last] as string, ...style });
    });
  };
  let at = 0;
  for (const match of text.matchAll(sequences)) {
    if (match.index > at) add(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') style = restyle(style, match[1] ?? '');
  }
  if (at < text.length) add(text.slice(at));
  if (lines.at(-1)?.length === 0) lines.pop();
  return lines;
}

/** Returns the length of the longest line. `Math.max(...lengths)` would overflow the stack for a million lines. */
export const longestOf = (lines: readonly OutputLine[]): number =>
  lines.reduce(
    (longest, line) =>
      Math.max(
        longest,
        line.reduce((sum, { text }) => sum + text.length, 0),
      ),
    0,
  );
