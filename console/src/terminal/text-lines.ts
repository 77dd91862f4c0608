/**
 * A recording's searchable text: lines with their times, without control sequences. For full-screen programs, lines are
 * in the order in which they were drawn.
 */

export interface TextHit {
  readonly line: number;
  /** Time at which the line was completed, in seconds since the recording began. */
  readonly at: number;
  /** Offset of the hit in the line. */
  readonly column: number;
  /** Part of the line around the hit. */
  readonly excerpt: string;
  /** Offset of the hit in the excerpt. */
  readonly from: number;
}

// Sequences that move the cursor start a new line. All other sequences are removed.
const moves = /\x1b\[[0-?]*[ -/]*[Hfd]/g;
const sequences =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const unfinished = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$/;
/** Maximum length of a control sequence. A longer one is treated as text. */
const maxSequence = 4_096;
/** Maximum length of a line. A longer line is split. */
const maxLine = 4_096;
/** Number of characters before and after a hit in its excerpt. */
const contextLength = 60;

export class TextLines {
  readonly texts: string[] = [];
  readonly times: number[] = [];
  #rest = '';
  #line = '';
  #lineAt = 0;

  feed(at: number, text: string): void {
    let all = this.#rest + text;
    const cut = all.length - maxSequence;
    const escapeAt = all.lastIndexOf('\x1b');
    const isCut = escapeAt >= 0 && escapeAt > cut && unfinished.test(all.slice(Math.max(0, cut)));
    this.#rest = '';
    if (isCut) {
      const from = Math.max(0, cut);
      const index = from + all.slice(from).search(unfinished);
      this.#rest = all.slice(index);
      all = all.slice(0, index);
    }
    const plain = all.includes('\x1b') ? all.replace(moves, '\n') : all;
    const parts = plain.replace(sequences, '').split(/\r\n|\n|\r/);
    for (const [index, part] of parts.entries()) {
      if (index > 0) this.#push();
      if (part === '') continue;
      this.#lineAt = at;
      this.#line = applyBackspaces(this.#line + part);
      while (this.#line.length > maxLine) {
        const more = this.#line.slice(maxLine);
        this.#line = this.#line.slice(0, maxLine);
        this.#push();
        this.#line = more;
        this.#lineAt = at;
      }
    }
  }

  end(): void {
    this.#push();
  }

  /** Searches the lines from `from` up to `to` (exclusive), ignoring case. */
  find(query: string, from: number, to: number, maxHits: number): TextHit[] {
    const needle = query.toLowerCase();
    const hits: TextHit[] = [];
    for (let line = from; line < Math.min(to, this.texts.length) && hits.length < maxHits; line++) {
      const text = this.texts[line] as string;
      const column = text.toLowerCase().indexOf(needle);
      if (column < 0) continue;
      const start = Math.max(0, column - contextLength);
      hits.push({
        line,
        at: this.times[line] as number,
        column,
        excerpt: text.slice(start, column + needle.length + contextLength),
        from: column - start,
      });
    }
    return hits;
  }

  #push(): void {
    // Skips a line that repeats the previous one, so that a search finds it only once.
    if (this.#line.trim() !== '' && this.#line !== this.texts.at(-1)) {
      this.texts.push(this.#line);
      this.times.push(this.#lineAt);
    }
    this.#line = '';
  }
}

function applyBackspaces(line: string): string {
  if (!line.includes('\b')) return line;
  const shown: string[] = [];
  for (const character of line) {
    if (character === '\b') shown.pop();
    else shown.push(character);
  }
  return shown.join('');
}
