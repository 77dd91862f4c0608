/**
 * The text of a recording, line by line with the time of each, without what moves the cursor or colours: to be searched.
 * Of programs that draw the whole screen the lines are what they drew, in that order. Pure.
 */

export interface TextHit {
  /** Which line. */
  readonly line: number;
  /** Seconds since the opening, when the line was whole. */
  readonly at: number;
  /** Where in the line it begins. */
  readonly column: number;
  /** Part of the line, around it. */
  readonly excerpt: string;
  /** Where in the excerpt it begins. */
  readonly from: number;
}

// Sequences that put the cursor elsewhere begin a new line of text; all others are left out.
const moves = /\x1b\[[0-?]*[ -/]*[Hfd]/g;
const sequences =
  /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const unfinished = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$/;
/** A sequence that does not end by then is none. */
const longestSequence = 4_096;
/** A longer line is several. */
const longestLine = 4_096;
const around = 60;

export class TextLines {
  readonly texts: string[] = [];
  readonly times: number[] = [];
  #rest = '';
  #line = '';
  #lineAt = 0;

  feed(at: number, text: string): void {
    let all = this.#rest + text;
    const cut = all.length - longestSequence;
    const begun = all.lastIndexOf('\x1b');
    const isCut = begun >= 0 && begun > cut && unfinished.test(all.slice(Math.max(0, cut)));
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
      this.#line = withoutRubbedOut(this.#line + part);
      while (this.#line.length > longestLine) {
        const more = this.#line.slice(longestLine);
        this.#line = this.#line.slice(0, longestLine);
        this.#push();
        this.#line = more;
        this.#lineAt = at;
      }
    }
  }

  end(): void {
    this.#push();
  }

  /**
   * Searches some of the lines, without regard to case.
   * @param most so many hits at the most
   */
  find(wanted: string, from: number, to: number, most: number): TextHit[] {
    const needle = wanted.toLowerCase();
    const hits: TextHit[] = [];
    for (let line = from; line < Math.min(to, this.texts.length) && hits.length < most; line++) {
      const text = this.texts[line] as string;
      const column = text.toLowerCase().indexOf(needle);
      if (column < 0) continue;
      const start = Math.max(0, column - around);
      hits.push({
        line,
        at: this.times[line] as number,
        column,
        excerpt: text.slice(start, column + needle.length + around),
        from: column - start,
      });
    }
    return hits;
  }

  #push(): void {
    // What is shown over and over is found where it was first.
    if (this.#line.trim() !== '' && this.#line !== this.texts.at(-1)) {
      this.texts.push(this.#line);
      this.times.push(this.#lineAt);
    }
    this.#line = '';
  }
}

/** As a terminal shows what was typed and rubbed out again. */
function withoutRubbedOut(line: string): string {
  if (!line.includes('\b')) return line;
  const kept: string[] = [];
  for (const character of line) {
    if (character === '\b') kept.pop();
    else kept.push(character);
  }
  return kept.join('');
}
