import { matching } from '../../host/files/bounded-match.ts';
import { readable, type TextLine } from './lines.ts';

export function* readableLines(lines: readonly TextLine[]): Generator<string> {
  for (const { text } of lines) yield readable(text);
}

/**
 * Returns the position at which a line or block is added: below the last match of `after`, or above the last match of
 * `before`, or at the end.
 * @param ignored indices of lines that do not count as matches
 */
export function insertionIndex(
  { after, before }: { readonly after?: string | null; readonly before?: string | null },
  lines: readonly TextLine[],
  ignored: ReadonlySet<number> = new Set(),
): number {
  const pattern = after ?? before ?? null;
  if (pattern === null || pattern === 'EOF') return lines.length;
  if (before === 'BOF') return 0;
  const matches = matching(pattern, readableLines(lines), undefined, after != null ? 'after' : 'before');
  const last = matches.findLastIndex((isMatch, index) => isMatch && !ignored.has(index));
  if (last === -1) return lines.length;
  return after != null ? last + 1 : last;
}

/**
 * Returns the indices of marker lines and of the lines in managed blocks. The agent would later remove text that is
 * added there.
 */
export function managedLines(lines: readonly TextLine[]): Set<number> {
  const managed = new Set<number>();
  let open = null as { readonly marker: string; readonly index: number } | null;
  for (const [index, { text }] of lines.entries()) {
    const [, word, marker] = /^# (BEGIN|END) muster: (\S+)\s*$/.exec(text) ?? [];
    if (word === undefined || marker === undefined) continue;
    managed.add(index);
    if (word === 'END' && open?.marker === marker)
      for (let inside = open.index + 1; inside < index; inside++) managed.add(inside);
    open = word === 'BEGIN' ? { marker, index } : null;
  }
  return managed;
}
