import { ControlSequences, type Token } from './control-sequences.ts';

/**
 * Filters output for the terminal of someone who only views it.
 * A recording, or another operator's session, is hostile input. Some sequences make a terminal answer (DSR, DA,
 * DECRQSS, DECRQM, window reports, color queries), and the answer arrives as if it were typed at the viewer's shell.
 * Others write to the clipboard, set titles, print, save files, resize the window, lock the keyboard, or enable reports
 * of the mouse and keys. So this is a list of what passes: text, colors, and moving, erasing and scrolling. Sequences
 * are written again in their plain form, so that no terminal can interpret them differently.
 */
export class ReplayFilter {
  readonly #sequences = new ControlSequences({ c1: true });
  readonly #modes: ReadonlySet<string>;

  /** @param types the viewer also types: then modes of keys, mouse, and pastes pass too */
  constructor({ types = false } = {}) {
    this.#modes = types ? typedModes : shownModes;
  }

  /** True if no sequence is incomplete. */
  get isAtRest(): boolean {
    return this.#sequences.isAtRest;
  }

  /** @returns the allowed output, in order; an incomplete sequence is returned with a later piece */
  feed(piece: string): string {
    return this.#sequences
      .feed(piece)
      .map((token) => admitted(token, this.#modes))
      .join('');
  }
}

const controls = new Set('\u0007\b\t\n\u000b\f\r\u000e\u000f');

// Finals without prefix and intermediates: ICH, the cursor, tabs, erasing, inserting, deleting, scrolling, REP, TBC,
// SGR, DECSTBM.
const plainFinals = new Set('@ABCDEFGHIJKLMPSTXZ`abdefgmrsu');

// DEC private modes that change the display; others, such as cursor keys, mouse, focus and pastes, change the input.
// Reversed screen, origin, wrapping, cursor (blinking, shown), reverse wrapping, margins, alternate screen.
const shownModes = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049']);

// Cursor keys, keypad, mouse, focus, pastes.
const keyModes = ['1', '9', '66', '1000', '1002', '1003', '1004', '1005', '1006', '1015', '1016', '2004'];
const typedModes = new Set([...shownModes, ...keyModes]);

function admitted(token: Token, modes: ReadonlySet<string>): string {
  switch (token.kind) {
    case 'text':
      return token.text;
    case 'control':
      return controls.has(token.character) ? token.character : '';
    case 'string':
      // Titles, clipboard, colors, links, images, queried settings, defined keys.
      return '';
    case 'escape':
      return escapeAdmitted(token.intermediates, token.final) ? `\u001b${token.intermediates}${token.final}` : '';
    case 'csi':
      return csiAdmitted(token, modes);
  }
}

function escapeAdmitted(intermediates: string, final: string): boolean {
  switch (intermediates) {
    case '':
      // Save and restore the cursor, move lines up and down, set a tab stop, reset.
      return '78DEHMc'.includes(final);
    case '(':
    case ')':
    case '*':
    case '+':
      // Line drawing and national sets.
      return /[0-9A-Z]/.test(final);
    case '#':
      return '34568'.includes(final);
    default:
      return false;
  }
}

function csiAdmitted(
  { prefix, params, intermediates, final }: Extract<Token, { kind: 'csi' }>,
  admittedModes: ReadonlySet<string>,
): string {
  if (!/^[\d:;]*$/.test(params)) return '';
  const whole = `\u001b[${prefix}${params}${intermediates}${final}`;
  if (intermediates === '') {
    if (prefix === '?' && (final === 'J' || final === 'K')) return whole;
    if (prefix === '?' && (final === 'h' || final === 'l')) {
      const modes = params.split(';').filter((mode) => admittedModes.has(mode));
      return modes.length === 0 ? '' : `\u001b[?${modes.join(';')}${final}`;
    }
    if (prefix !== '') return '';
    // Insert mode only; the others lock the keyboard, echo it, or change what Enter sends.
    if (final === 'h' || final === 'l') return params === '4' ? whole : '';
    // With five parameters it enables mouse tracking.
    if (final === 'T' && params.includes(';')) return '';
    // A large count would keep the terminal busy for minutes.
    if (final === 'b' && params.length > 4) return '';
    return plainFinals.has(final) ? whole : '';
  }
  // The cursor shape, and a soft reset.
  const isKnown =
    intermediates === ' ' ? final === 'q' && /^\d*$/.test(params) : intermediates + final === '!p' && params === '';
  return prefix === '' && isKnown ? whole : '';
}

/** Extracts plain text, in lines, without cursor movement and colors. */
export class PlainText {
  readonly #sequences = new ControlSequences({ c1: true });
  #heldReturn = false;
  #lineBegins = true;

  feed(piece: string): string {
    let text = '';
    for (const token of this.#sequences.feed(piece)) {
      const said =
        token.kind === 'text'
          ? token.text
          : token.kind === 'control' && '\t\n\r'.includes(token.character)
            ? token.character
            : '';
      if (said === '') continue;
      // An overwritten line becomes a separate line, unless it is empty. CR CR LF, as terminals send it, is one line
      // end.
      if (this.#heldReturn && said !== '\r' && said !== '\n' && !this.#lineBegins) text += '\n';
      this.#heldReturn = said === '\r';
      if (this.#heldReturn) continue;
      text += said;
      this.#lineBegins = said === '\n';
    }
    return text;
  }
}
