/** The newest part of one stream of a program, assembled from pieces. */

interface Piece {
  from: number;
  to: number;
  text: string;
}

/** Maximum characters kept of a stream. */
const kept = 16 * 1024;
/**
 * Maximum number of runs of text, with gaps between them. A working agent causes few. Each run costs memory even if it is
 * empty.
 */
const maxRuns = 64;

export class OutputTail {
  /** Runs of text in order, with a gap between each two. */
  #runs: Piece[] = [];

  get length(): number {
    return this.#runs.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** Whether output is missing before or within the kept text. */
  get isCut(): boolean {
    return this.#runs.length > 1 || (this.#runs[0]?.from ?? 0) > 0;
  }

  add({ from, to, text }: Piece): void {
    if (text === '') return;
    const last = this.#runs.at(-1);
    // The offset went back, so the agent was restarted and runs the program again.
    if (last !== undefined && from < last.to) this.#runs = [];
    if (last !== undefined && from === last.to) {
      last.to = to;
      last.text += text;
    } else if (this.#runs.push({ from, to, text }) > maxRuns) this.#runs.shift();
    this.#trim();
  }

  /**
   * @param hide removes secrets from lines. With it, incomplete lines are left out, because it cannot find a partial
   * secret
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
      // Avoids splitting a surrogate pair.
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
  // The run is a part of a line, without its beginning and its end.
  return from !== 0 && start === 0 ? '' : text.slice(start, text.lastIndexOf('\n') + 1);
}
