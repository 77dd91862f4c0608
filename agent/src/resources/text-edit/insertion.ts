import { matching } from '../../host/files/bounded-match.ts';
import { readable, type TextLine } from './lines.ts';

export function* readableLines(lines: readonly TextLine[]): Generator<string> {
  for (const { text } of lines) yield readable(text);
}

/**
 * Returns the position at which a line or block is added: below the last match of `after`, or above the last match of
 * `before`, or at the end.
 */
export function insertionIndex(
  { after, before }: { readonly after?: string | null; readonly before?: string | null },
  lines: readonly TextLine[],
): number {
  const pattern = after ?? before ?? null;
  if (pattern === null || pattern === 'EOF') return lines.length;
  if (before === 'BOF') return 0;
  const last = matching(pattern, readableLines(lines), undefined, after != null ? 'after' : 'before').lastIndexOf(true);
  if (last === -1) return lines.length;
  return after != null ? last + 1 : last;
}
