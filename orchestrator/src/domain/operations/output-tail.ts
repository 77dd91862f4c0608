/** The newest of one stream of a program, put together from the pieces that came. */

interface Piece {
  from: number;
  to: number;
  text: string;
}

/** Characters kept of a stream. */
const kept = 16 * 1024;
/** Pieces with something missing between them. An agent that is whole has few; each costs something, whatever is in it. */
const mostRuns = 64;

export class OutputTail {
  /** In order; between two of them something is missing. */
  #runs: Piece[] = [];

  get length(): number {
    return this.#runs.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** Something is missing before, in between or among what is kept. */
  get isCut(): boolean {
    return this.#runs.length > 1 || (this.#runs[0]?.from ?? 0) > 0;
  }

  add({ from, to, text }: Piece): void {
    if (text === '') return;
    const last = this.#runs.at(-1);
    // It has begun anew: its agent was restarted and runs it again.
    if (last !== undefined && from < last.to) this.#runs = [];
    if (last !== undefined && from === last.to) {
      last.to = to;
      last.text += text;
    } else if (this.#runs.push({ from, to, text }) > mostRuns) this.#runs.shift();
    this.#trim();
  }

  /**
   * @param hide takes out of lines what must not be shown. Lines of which a part is missing or still to come are left
   *   out then: half of what is to be hidden would not be found
   */
  text(hide: ((lines: string) => string) | null): string {
    let end = 0;
    let text = '';
    for (const run of this.#runs) {
      if (run.from > end) text += `${text === '' || text.endsWith('\n') ? '' : '\n'}${missing(run.from - end)}`;
      text += hide === null ? run.text : hide(linesOf(run));
      end = run.to;
    }
    return text;
  }

  #trim(): void {
    let excess = this.length - kept;
    while (excess > 0) {
      const [first] = this.#runs as [Piece];
      if (first.text.length <= excess && this.#runs.length > 1) {
        excess -= first.text.length;
        this.#runs.shift();
        continue;
      }
      // Not through the middle of a character.
      const cut = first.text.slice(excess).replace(/^[\udc00-\udfff]/, '');
      first.from += Buffer.byteLength(first.text.slice(0, first.text.length - cut.length));
      first.text = cut;
      return;
    }
  }
}

const missing = (bytes: number): string => `[… ${bytes} bytes not shown while it runs …]\n`;

function linesOf({ from, text }: Piece): string {
  const start = from === 0 ? 0 : text.indexOf('\n') + 1;
  // What begins in the middle of a line and has no end of one is all of one line.
  return from !== 0 && start === 0 ? '' : text.slice(start, text.lastIndexOf('\n') + 1);
}
