import { SerializeAddon } from '@xterm/addon-serialize';
import type { Terminal } from '@xterm/xterm';

/** Lines above the screen that a snapshot has. */
export const snapshotLines = 500;

/** Empties a screen. That the cursor is hidden outlives a reset in xterm. */
export const emptied = '\x1bc\x1b[?25h';

/** Rows from the top, both included. */
interface Margins {
  readonly top: number;
  readonly bottom: number;
}

/**
 * Takes snapshots of a terminal: what brings an emptied one of the same size to where it is. Between which rows it scrolls
 * and whether its cursor is hidden xterm tells nobody, so they are watched as they are said.
 */
export class Snapshots {
  readonly #terminal: Terminal;
  readonly #serialize = new SerializeAddon();
  /** Null: all rows. */
  #margins: { normal: Margins | null; alternate: Margins | null } = { normal: null, alternate: null };
  #hidden = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.loadAddon(this.#serialize);
    const { parser } = terminal;
    // Each leaves the rest to xterm, which hears of it afterwards.
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
    // The alternate screen is begun anew each time.
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
    // Both put the cursor into the corner.
    if (margins !== null || modes.originMode) {
      const from = modes.originMode ? (margins?.top ?? 1) : 1;
      text += `\x1b[${active.cursorY + 2 - from};${Math.min(active.cursorX + 1, cols)}H`;
    }
    return text + (this.#hidden ? '\x1b[?25l' : '');
  }

  #scrollsBetween([top, bottom]: (number | number[])[]): void {
    const { rows, buffer } = this.#terminal;
    const margins = { top: Number(top) || 1, bottom: Math.min(Number(bottom) || rows, rows) };
    // Else xterm leaves them as they are.
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
