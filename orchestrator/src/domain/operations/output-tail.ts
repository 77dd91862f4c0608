/** Keeps the newest part of a program's output stream, assembled from chunks. */

interface Piece {
  from: number;
  to: number;
  text: string;
}

/** Maximum number of characters kept per stream. */
const maxChars = 16 * 1024;
/**
 * Maximum number of runs of text, which have gaps between them. A correct agent causes few. Limited because even an
 * empty run uses memory.
 */
const maxRuns = 64;

export class OutputTail {
  /** Runs of text in order, with a gap between consecutive ones. */
  #runs: Piece[] = [];

  get length(): number {
    return this.#runs.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** Whether output before or within the kept text is missing. */
  get isCut(): boolean {
    return this.#runs.length > 1 || (this.#runs[0]?.from ?? 0) > 0;
  }

  add({ from, to, text }: Piece): void {
    if (text === '') return;
    const last = this.#runs.at(-1);
    // The offset decreased, so the agent has restarted and is running the program again.
    if (last !== undefined && from < last.to) this.#runs = [];
    if (last !== undefined && from === last.to) {
      last.to = to;
      last.text += text;
    } else if (this.#runs.push({ from, to, text }) > maxRuns) this.#runs.shift();
    this.#trim();
  }

  /**
   * Returns the kept text, with a note for each gap.
   * @param hide removes secrets from complete lines, and omits incomplete ones, which may contain part of a secret;
   * null to hide nothing
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
    let excess = this.length - maxChars;
    while (excess > 0) {
      const [first] = this.#runs as [Piece];
      if (first.text.length <= excess && this.#runs.length > 1) {
        excess -= first.text.length;
        this.#runs.shift();
        continue;
      }
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
  // Drops partial lines at the start and the end of the run.
  return from !== 0 && start === 0 ? '' : text.slice(start, text.lastIndexOf('\n') + 1);
}
