import { ControlSequences, type Token } from './control-sequences.ts';

/** DEC private modes that are on by default. All others are off. */
const onAtRest = new Set(['7', '25']);
/**
 * Switching these modes off changes the screen or moves the cursor, so they are restored only if the program switched
 * them on.
 */
const otherScreens = ['1049', '1047', '47'];

/**
 * Tracks the terminal modes that a program has changed, so that only these are restored if the program is interrupted.
 */
export class ScreenState {
  readonly #sequences = new ControlSequences({ c1: false });
  /** DEC private modes that differ from the default. */
  readonly #modes = new Set<string>();
  /** Sequences that restore the remaining settings, keyed by setting. */
  readonly #undo = new Map<string, string>();
  #keyboardLevels = 0;

  feed(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // Fast path: most output is plain text.
    if (this.#sequences.isAtRest && !piece.includes(0x1b) && !piece.includes(0x0e)) return;
    for (const token of this.#sequences.feed(piece.toString('latin1'))) this.#see(token);
  }

  /** Returns the sequence that restores the terminal; empty if nothing has changed. Clears the tracked changes. */
  restore(): string {
    let text = this.#sequences.isAtRest ? '' : '\u0018';
    text += this.#undo.get('margins') ?? '';
    for (const mode of this.#modes)
      if (!otherScreens.includes(mode)) text += `\u001b[?${mode}${onAtRest.has(mode) ? 'h' : 'l'}`;
    for (const screen of otherScreens) if (this.#modes.has(screen)) text += `\u001b[?${screen}l`;
    for (const [what, undo] of this.#undo) if (what !== 'margins') text += undo;
    if (this.#keyboardLevels > 0) text += `\u001b[<${this.#keyboardLevels}u`;
    this.#reset();
    if (!this.#sequences.isAtRest) this.#sequences.feed('\u0018');
    return text;
  }

  #reset(): void {
    this.#modes.clear();
    this.#undo.clear();
    this.#keyboardLevels = 0;
  }

  #see(token: Token): void {
    if (token.kind === 'csi') this.#csi(token);
    else if (token.kind === 'escape') this.#escape(token.intermediates, token.final);
    else if (token.kind === 'string' && token.introducer === 'osc') this.#osc(token.data);
    else if (token.kind === 'control' && token.character === '\u000e') this.#undo.set('shift', '\u000f');
    else if (token.kind === 'control' && token.character === '\u000f') this.#undo.delete('shift');
  }

  #csi({ prefix, params, intermediates, final }: Extract<Token, { kind: 'csi' }>): void {
    const set = final === 'h';
    const keep = (what: string, undo: string, changed: boolean) => {
      if (changed) this.#undo.set(what, undo);
      else this.#undo.delete(what);
    };
    switch (prefix + intermediates + final) {
      case '?h':
      case '?l':
        // Skips 1048, because a saved cursor needs no restoring, and 3 (132 columns), because the earlier width is unknown.
        for (const mode of params.split(';')) {
          if (!/^\d{1,5}$/.test(mode) || mode === '1048' || mode === '3') continue;
          if (set !== onAtRest.has(mode)) this.#modes.add(mode);
          else this.#modes.delete(mode);
        }
        return;
      case 'h':
      case 'l':
        for (const mode of params.split(';'))
          if (mode === '4' || mode === '20') keep(`mode ${mode}`, `\u001b[${mode}l`, set);
        return;
      case 'm':
        keep('colours', '\u001b[0m', params !== '' && params !== '0');
        return;
      case '>m':
        keep('modified keys', '\u001b[>4m', /^4;[1-9]/.test(params));
        return;
      case 'r':
        // Saves and restores the cursor, because resetting the margins moves it to the top left.
        keep('margins', '\u001b7\u001b[r\u001b8', params !== '' && params !== ';');
        return;
      case ' q':
        keep('cursor', '\u001b[0 q', params !== '' && params !== '0');
        return;
      case '>u':
        this.#keyboardLevels = Math.min(64, this.#keyboardLevels + 1);
        return;
      case '<u':
        this.#keyboardLevels = Math.max(0, this.#keyboardLevels - Math.max(1, Number(params) || 1));
        return;
      case '!p':
        this.#soft();
        return;
      default:
    }
  }

  #escape(intermediates: string, final: string): void {
    if (intermediates === '' && final === 'c') this.#reset();
    else if (intermediates === '' && final === '=') this.#undo.set('keypad', '\u001b>');
    else if (intermediates === '' && final === '>') this.#undo.delete('keypad');
    else if ('()*+'.includes(intermediates) && intermediates.length === 1) {
      if (final === 'B') this.#undo.delete(`set ${intermediates}`);
      else this.#undo.set(`set ${intermediates}`, `\u001b${intermediates}B`);
    }
  }

  /** Tracks DECSTR, a soft reset, which does not change the alternate screen, the mouse, or the keyboard modes. */
  #soft(): void {
    for (const mode of ['1', '6', '7', '25']) this.#modes.delete(mode);
    for (const what of ['mode 4', 'colours', 'margins', 'keypad', 'shift', 'set (', 'set )', 'set *', 'set +'])
      this.#undo.delete(what);
  }

  /** Tracks changed colors. A query changes none. */
  #osc(data: string): void {
    const [number = '', ...values] = data.split(';');
    if (values.length === 0 || values.includes('?')) return;
    if (number === '4') this.#undo.set('palette', '\u001b]104\u001b\\');
    if (number === '10' || number === '11' || number === '12')
      this.#undo.set(`colour ${number}`, `\u001b]1${number}\u001b\\`);
    if (number === '104' || number === '110' || number === '111' || number === '112')
      this.#undo.delete(number === '104' ? 'palette' : `colour ${number.slice(1)}`);
  }
}
