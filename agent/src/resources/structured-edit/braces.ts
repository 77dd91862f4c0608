import { eolOf, indentationAt, lineEnd, lineStart, type Range, spliced, startsLine } from './syntax.ts';

/** Edits comma-separated entries between braces or brackets, as in JSON, TOML, and YAML flow style. */

export interface Braces {
  /** Offset after the opening brace. */
  readonly open: number;
  /** Offset of the closing brace. */
  readonly close: number;
  readonly entries: readonly Range[];
}

export interface BraceStyle {
  /** The characters that begin a comment, which ends with the line. */
  readonly comment: '#' | '//';
  /** Whitespace between the braces and an inline entry. */
  readonly padding: string;
  /** Whether the first entry is placed on its own line. */
  readonly multiline: boolean;
  /** Indentation of one level. */
  readonly unit: string;
}

/**
 * Returns the offset of the next character that is neither whitespace nor in a comment. With `stop`, does not go past
 * the end of the line.
 */
function skip(text: string, from: number, comment: BraceStyle['comment'], stop: 'at line end' | null = null): number {
  let at = from;
  while (at < text.length) {
    if (text.startsWith(comment, at)) {
      const end = text.indexOf('\n', at);
      at = end === -1 ? text.length : end;
    } else if (comment === '//' && text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2);
      at = end === -1 ? text.length : end + 2;
    } else if (text[at] === '\n' ? stop !== null : !/\s/.test(text[at] as string)) return at;
    else at++;
  }
  return at;
}

function commaBehind(text: string, entry: Range, { close }: Braces, comment: BraceStyle['comment']): number | null {
  const at = skip(text, entry.end, comment);
  return at < close && text[at] === ',' ? at : null;
}

/** @param render returns the entry, given the indentation of its line and whether it is on its own line */
export function insertInBraces(
  text: string,
  braces: Braces,
  render: (indentation: string, ownsLine: boolean) => string,
  style: BraceStyle,
): string {
  const { open, close, entries } = braces;
  const eol = eolOf(text);
  const last = entries.at(-1);
  if (last === undefined) {
    const outer = indentationAt(text, open);
    const inner = outer + style.unit;
    const isBlank = text.slice(open, close).trim() === '';
    if (!isBlank && startsLine(text, close))
      return spliced(
        text,
        { start: lineStart(text, close), end: lineStart(text, close) },
        inner + render(inner, true) + eol,
      );
    if (!isBlank) return spliced(text, { start: close, end: close }, `${render(outer, false)}${style.padding}`);
    const entry = style.multiline
      ? `${eol}${inner}${render(inner, true)}${eol}${outer}`
      : style.padding + render(outer, false) + style.padding;
    return spliced(text, { start: open, end: close }, entry);
  }
  const comma = commaBehind(text, last, braces, style.comment);
  const behind = comma === null ? last.end : comma + 1;
  const next = skip(text, behind, style.comment, 'at line end');
  if (startsLine(text, last.start) && text[next] === '\n' && next < close) {
    const indentation = indentationAt(text, last.start);
    const at = next + 1;
    const line = `${indentation}${render(indentation, true)}${comma === null ? '' : ','}${eol}`;
    const added = spliced(text, { start: at, end: at }, line);
    return comma === null ? spliced(added, { start: last.end, end: last.end }, ',') : added;
  }
  const indentation = indentationAt(text, last.start);
  const before = entries.at(-2);
  const gap = before === undefined ? null : /^\s*,([ \t]*)$/.exec(text.slice(before.end, last.start));
  const entry = `${comma === null ? ',' : ''}${gap?.[1] ?? ' '}${render(indentation, false)}`;
  return spliced(text, { start: behind, end: behind }, entry);
}

/**
 * Removes the entry at the index, together with its comma. Also removes the entry's lines if nothing else is on them.
 */
export function removeFromBraces(text: string, braces: Braces, index: number, comment: BraceStyle['comment']): string {
  const { open, close, entries } = braces;
  const entry = entries[index] as Range;
  const previous = entries[index - 1];
  const next = entries[index + 1];
  const comma = commaBehind(text, entry, braces, comment);
  const behind = comma === null ? entry.end : comma + 1;
  const rest = skip(text, behind, comment, 'at line end');
  const ownsLines = startsLine(text, entry.start) && text[rest] === '\n' && rest < close;
  if (previous === undefined && next === undefined) {
    const around = text.slice(open, entry.start) + text.slice(behind, close);
    if (around.trim() === '') return text.slice(0, open) + text.slice(close);
    if (!ownsLines) return spliced(text, { start: entry.start, end: behind }, '');
  }
  if (ownsLines) {
    const without = spliced(text, { start: lineStart(text, entry.start), end: lineEnd(text, rest) }, '');
    if (next !== undefined || comma !== null || previous === undefined) return without;
    const before = commaBehind(text, previous, braces, comment);
    return before === null ? without : spliced(without, { start: before, end: before + 1 }, '');
  }
  if (next !== undefined) return spliced(text, { start: entry.start, end: next.start }, '');
  const from = previous === undefined ? open : previous.end;
  const kept = comma === null ? from : (commaBehind(text, previous as Range, braces, comment) ?? from - 1) + 1;
  return spliced(text, { start: kept, end: behind }, '');
}
