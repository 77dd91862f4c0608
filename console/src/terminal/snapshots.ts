import { SerializeAddon } from '@xterm/addon-serialize';
import type { Terminal } from '@xterm/xterm';

/** Maximum number of scrollback lines in a snapshot. */
export const snapshotLines = 500;

/** Clears a screen and shows the cursor, because a reset in xterm does not show it. */
export const emptied = '\x1bc\x1b[?25h';

/** First and last row of the scroll margins, from 1, inclusive. */
interface Margins {
  readonly top: number;
  readonly bottom: number;
}

/**
 * Takes snapshots of a terminal: escape sequences that restore its state on an empty terminal of the same size. xterm
 * does not expose its scroll margins or whether the cursor is hidden, so this class observes the sequences that set
 * them.
 */
export class Snapshots {
  readonly #terminal: Terminal;
  readonly #serialize = new SerializeAddon();
  /** Scroll margins per screen buffer; null if all rows scroll. */
  #margins: { normal: Margins | null; alternate: Margins | null } = { normal: null, alternate: null };
  #hidden = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.loadAddon(this.#serialize);
    const { parser } = terminal;
    // Returning false makes xterm handle the sequence as well.
    const seen = (act: () => void) => {
      act();
      return false;
    };
    parser.registerCsiHandler({ final: 'r' }, (params) => seen(() => this.#scrollsBetween(params)));
    parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => seen(() => this.#setMode(params, true)));
    parser.registerCsiHandler({ prefix: '?', final: 'l' }, (params) => seen(() => this.#setMode(params, false)));
    parser.registerCsiHandler({ intermediates: '!', final: 'p' }, () =>
      seen(() => {
        this.#margins[terminal.buffer.active.type] = null;
        this.#hidden = false;
      }),
    );
    parser.registerEscHandler({ final: 'c' }, () => seen(() => this.#allRows()));
    terminal.onResize(() => this.#allRows());
    // The alternate screen is empty and has no margins when a program enters it.
    terminal.buffer.onBufferChange(({ type }) => {
      if (type === 'normal') this.#margins.alternate = null;
    });
  }

  take(): string {
    const { buffer, modes, cols } = this.#terminal;
    const { active } = buffer;
    const margins = this.#margins[active.type];
    let text = this.#serialize.serialize({ scrollback: snapshotLines });
    if (margins !== null) text += `\x1b[${margins.top};${margins.bottom}r`;
    // Setting the margins moves the cursor to the corner. Setting the origin mode does too.
    if (margins !== null || modes.originMode) {
      const from = modes.originMode ? (margins?.top ?? 1) : 1;
      text += `\x1b[${active.cursorY + 2 - from};${Math.min(active.cursorX + 1, cols)}H`;
    }
    return text + (this.#hidden ? '\x1b[?25l' : '');
  }

  #scrollsBetween([top, bottom]: (number | number[])[]): void {
    const { rows, buffer } = this.#terminal;
    const margins = { top: Number(top) || 1, bottom: Math.min(Number(bottom) || rows, rows) };
    // xterm ignores margins with fewer than two rows.
    if (margins.bottom > margins.top)
      this.#margins[buffer.active.type] = margins.top === 1 && margins.bottom === rows ? null : margins;
  }

  #setMode(params: (number | number[])[], on: boolean): void {
    if (params.includes(25)) this.#hidden = !on;
  }

  #allRows(): void {
    this.#margins = { normal: null, alternate: null };
  }
}
