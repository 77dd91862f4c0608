export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'same' | 'hunk' | 'note';
  readonly text: string;
  /** Line numbers in the old and the new text; null if that text does not contain the line. */
  readonly before: number | null;
  readonly after: number | null;
}

export function diffLines(unified: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let before = 0;
  let after = 0;
  let inHunk = false;
  const all = unified.split('\n');
  if (all.at(-1) === '') all.pop();
  for (const line of all) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk !== null) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      inHunk = true;
      lines.push({ kind: 'hunk', text: line, before: null, after: null });
    } else if (!inHunk) {
      // Skips the file header, because the page already shows the file's name.
      if (!/^(---|\+\+\+|Index: |={5,}|diff )/.test(line))
        lines.push({ kind: 'note', text: line, before: null, after: null });
    } else if (line.startsWith('+')) lines.push({ kind: 'added', text: line.slice(1), before: null, after: after++ });
    else if (line.startsWith('-')) lines.push({ kind: 'removed', text: line.slice(1), before: before++, after: null });
    else if (line.startsWith('\\')) lines.push({ kind: 'note', text: line.slice(2), before: null, after: null });
    else if (line.startsWith(' ') || line === '')
      lines.push({ kind: 'same', text: line.slice(1), before: before++, after: after++ });
    else lines.push({ kind: 'note', text: line, before: null, after: null });
  }
  return lines;
}
