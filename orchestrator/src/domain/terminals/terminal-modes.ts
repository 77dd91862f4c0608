/**
 * Tracks a terminal's modes from its output, because a screen rebuilt from the middle of a recording lacks them. Scans
 * only for escape characters, to save time.
 */

const escapeByte = 0x1b;
/** Maximum length of a sequence that switches any of these modes. */
const maxSequenceLength = 64;

const alternateScreens = [47, 1047, 1049];
/** Groups of mutually exclusive modes. Turning off any mode in a group turns off the group's active mode. */
const exclusive = [
  [9, 1000, 1002, 1003],
  [1005, 1006, 1015, 1016],
];
const onByDefault = [7, 25];
const followed = new Set([...exclusive.flat(), ...onByDefault, 1, 6, 45, 66, 1004, 2004]);
/** Modes that the screen serializer does not write. */
const left = new Set([25, 1005, 1006, 1015, 1016]);

export class TerminalModes {
  /** Modes that differ from their default, in the order in which they were switched. */
  readonly #switched = new Map<number, boolean>();
  #alternate = false;
  #cursorStyle = '';
  /** Scroll margins of the main screen and the alternate screen. */
  #margins = ['', ''];
  /** Bytes of an incomplete escape sequence; null outside a sequence. */
  #sequence: string | null = null;

  follow(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      if (this.#sequence === null) {
        at = bytes.indexOf(escapeByte, at);
        if (at === -1) return;
        this.#sequence = '';
      } else this.#byte(bytes[at] as number);
    }
  }

  /** Resets the margins, as resizing does. */
  resized(): void {
    this.#margins = ['', ''];
  }

  /** Whether the alternate screen is shown. Programs draw it completely once, and then update parts of it. */
  get alternate(): boolean {
    return this.#alternate;
  }

  /** Returns the sequences that set a new terminal to this state. */
  opening(): string {
    // If a sequence is incomplete, the next bytes of the recording complete it.
    const unfinished = this.#sequence === null ? '' : `\x1b${this.#sequence}`;
    return `${this.#alternate ? '\x1b[?1049h' : ''}${this.#switches(() => true)}${this.#rest()}${unfinished}`;
  }

  /**
   * Returns the sequences to append to a screen's text.
   * @param cursor position counted from 1; null if the cursor is at the end of the text, in a full row
   */
  closing(cursor: { row: number; column: number } | null): string {
    return `${this.#switches((mode) => left.has(mode))}${this.#rest()}${cursor === null ? '' : this.#placed(cursor)}`;
  }

  get movesCursor(): boolean {
    return this.#margin !== '' || this.#switched.has(6);
  }

  #placed({ row, column }: { row: number; column: number }): string {
    // In origin mode, rows are counted from the upper margin.
    const above = this.#switched.get(6) === true ? Math.max(0, Number.parseInt(this.#margin, 10) - 1 || 0) : 0;
    return `\x1b[${row - above};${column}H`;
  }

  get #margin(): string {
    return this.#margins[this.#alternate ? 1 : 0] as string;
  }

  #switches(which: (mode: number) => boolean): string {
    return [...this.#switched]
      .filter(([mode]) => which(mode))
      .map(([mode, on]) => `\x1b[?${mode}${on ? 'h' : 'l'}`)
      .join('');
  }

  #rest(): string {
    return (this.#cursorStyle && `\x1b[${this.#cursorStyle} q`) + (this.#margin && `\x1b[${this.#margin}r`);
  }

  #byte(byte: number): void {
    const sequence = this.#sequence as string;
    if (byte === escapeByte) this.#sequence = '';
    else if (byte === 0x18 || byte === 0x1a || byte > 0x7e || sequence.length >= maxSequenceLength)
      this.#sequence = null;
    else if (byte < 0x20) return;
    else if (sequence === '') {
      this.#sequence = byte === 0x5b ? '[' : null;
      if (byte === 0x63) this.#reset();
      else if (byte === 0x3d || byte === 0x3e) this.#switch(66, byte === 0x3d);
    } else if (byte < 0x40) this.#sequence = sequence + String.fromCharCode(byte);
    else {
      this.#sequence = null;
      this.#control(sequence.slice(1), String.fromCharCode(byte));
    }
  }

  #control(parameters: string, final: string): void {
    const modes = /^\?([\d;]+)$/.exec(parameters)?.[1];
    if (modes !== undefined && (final === 'h' || final === 'l')) {
      for (const mode of modes.split(';')) this.#switch(Number(mode), final === 'h');
    } else if (final === 'q' && /^\d? $/.test(parameters)) {
      this.#cursorStyle = /^0? $/.test(parameters) ? '' : parameters.trim();
    } else if (final === 'r' && /^(\d{0,4};\d{0,4}|\d{0,4})$/.test(parameters)) {
      this.#margins[this.#alternate ? 1 : 0] = parameters;
    } else if (final === 'p' && parameters === '!') {
      for (const mode of [1, 6, 7, 25, 66]) this.#switched.delete(mode);
      this.#margins[this.#alternate ? 1 : 0] = '';
    }
  }

  #switch(mode: number, on: boolean): void {
    if (alternateScreens.includes(mode)) {
      if (on && !this.#alternate) this.#margins[1] = '';
      this.#alternate = on;
    }
    if (!followed.has(mode)) return;
    for (const group of exclusive) if (group.includes(mode)) for (const other of group) this.#switched.delete(other);
    this.#switched.delete(mode);
    if (on !== onByDefault.includes(mode)) this.#switched.set(mode, on);
  }

  #reset(): void {
    this.#switched.clear();
    this.#alternate = false;
    this.#cursorStyle = '';
    this.#margins = ['', ''];
  }
}
