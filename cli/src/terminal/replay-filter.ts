import { ControlSequences, type Token } from './control-sequences.ts';

/**
 * Filters output for the terminal of an operator who only views it. A recording or another operator's session is
 * untrusted input. Some sequences make a terminal send a response (DSR, DA, DECRQSS, DECRQM, window reports, color
 * queries), which arrives as if the viewer had typed it. Others write to the clipboard, set titles, print, save files,
 * resize the window, lock the keyboard, or enable mouse and key reports. Therefore, only listed sequences pass: text,
 * colors, cursor movement, erasing, and scrolling. They are rewritten in their canonical form, so that no terminal
 * interprets them differently.
 */
export class ReplayFilter {
  readonly #sequences = new ControlSequences({ c1: true });
  readonly #modes: ReadonlySet<string>;

  /**
   * @param types whether the viewer also types, in which case sequences that set key, mouse, and paste modes pass too
   */
  constructor({ types = false } = {}) {
    this.#modes = types ? typedModes : shownModes;
  }

  /** True if no sequence is incomplete. */
  get isAtRest(): boolean {
    return this.#sequences.isAtRest;
  }

  /**
   * Filters a chunk.
   * @returns the allowed output in order; the output of an incomplete sequence is returned with a later chunk
   */
  feed(piece: string): string {
    return this.#sequences
      .feed(piece)
      .map((token) => admitted(token, this.#modes))
      .join('');
  }
}

const controls = new Set('\u0007\b\t\n\u000b\f\r\u000e\u000f');

// Final characters that pass without a prefix and intermediates: ICH, cursor movement, tabs, erasing, inserting,
// deleting, scrolling, REP, TBC, SGR, DECSTBM.
const plainFinals = new Set('@ABCDEFGHIJKLMPSTXZ`abdefgmrsu');

// DEC private modes that change only the display: reversed screen, origin, wrapping, cursor blinking and visibility,
// reverse wrapping, margins, and alternate screen. Other modes change the input.
const shownModes = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049']);

// DEC private modes that change the input: cursor keys, keypad, mouse, focus, and paste.
const keyModes = ['1', '9', '66', '1000', '1002', '1003', '1004', '1005', '1006', '1015', '1016', '2004'];
const typedModes = new Set([...shownModes, ...keyModes]);

function admitted(token: Token, modes: ReadonlySet<string>): string {
  switch (token.kind) {
    case 'text':
      return token.text;
    case 'control':
      return controls.has(token.character) ? token.character : '';
    case 'string':
      // Strings set titles, the clipboard, colors, links, images, or key definitions, or query settings.
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
      // Save and restore the cursor, move one line up or down, set a tab stop, or reset.
      return '78DEHMc'.includes(final);
    case '(':
    case ')':
    case '*':
    case '+':
      // Line drawing and national character sets.
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
  const sequence = `\u001b[${prefix}${params}${intermediates}${final}`;
  if (intermediates === '') {
    if (prefix === '?' && (final === 'J' || final === 'K')) return sequence;
    if (prefix === '?' && (final === 'h' || final === 'l')) {
      const modes = params.split(';').filter((mode) => admittedModes.has(mode));
      return modes.length === 0 ? '' : `\u001b[?${modes.join(';')}${final}`;
    }
    if (prefix !== '') return '';
    // Allows only insert mode. The other modes lock the keyboard, echo input, or change what Enter sends.
    if (final === 'h' || final === 'l') return params === '4' ? sequence : '';
    // With five parameters, T enables mouse tracking.
    if (final === 'T' && params.includes(';')) return '';
    // REP: a large count would keep the terminal busy for minutes.
    if (final === 'b' && params.length > 4) return '';
    return plainFinals.has(final) ? sequence : '';
  }
  // Cursor shape and soft reset.
  const isKnown =
    intermediates === ' ' ? final === 'q' && /^\d*$/.test(params) : intermediates + final === '!p' && params === '';
  return prefix === '' && isKnown ? sequence : '';
}

/** Converts terminal output to lines of plain text, without cursor movement and colors. */
export class PlainText {
  readonly #sequences = new ControlSequences({ c1: true });
  #pendingReturn = false;
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
      // Text before a carriage return becomes a separate line unless it is empty. CR CR LF, which terminals send, is
      // treated as one line ending.
      if (this.#pendingReturn && said !== '\r' && said !== '\n' && !this.#lineBegins) text += '\n';
      this.#pendingReturn = said === '\r';
      if (this.#pendingReturn) continue;
      text += said;
      this.#lineBegins = said === '\n';
    }
    return text;
  }
}
