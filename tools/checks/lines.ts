/** A name in a source file. */
export interface NamedLine {
  name: string;
  /** Line number, from 1. */
  line: number;
}

/** Returns the offsets of the line starts in a text. */
export function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

export function lineAt(starts: readonly number[], offset: number): number {
  let line = 0;
  while (line < starts.length && (starts[line] as number) <= offset) line++;
  return line;
}
