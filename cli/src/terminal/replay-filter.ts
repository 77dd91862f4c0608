import { ControlSequences, type Token } from './control-sequences.ts';

/**
 * What may reach the terminal of somebody who only looks on.
 *
 * A recording, or another's session, was written by whatever ran on that machine: it is hostile. Some sequences make a
 * terminal answer (DSR, DA, DECRQSS, DECRQM, window reports, queries of colours), and an answer arrives as if it had been
 * typed: at the shell of whoever looks on. Others write to the clipboard, set titles that are pasted elsewhere, print,
 * save files, resize the window, lock the keyboard, or have the mouse and the keys reported. So this is a list of what
 * passes, not of what does not: text, colours, moving, erasing and scrolling. What passes is put together anew in its plain
 * form, so that no terminal can read it otherwise than it was judged here.
 */
export class ReplayFilter {
  readonly #sequences = new ControlSequences({ c1: true });
  readonly #modes: ReadonlySet<string>;

  /** @param types whoever is shown it types there: then what keys, mouse and pastes send is as the program has asked */
  constructor({ types = false } = {}) {
    this.#modes = types ? typedModes : shownModes;
  }

  /** Nothing is left half read. */
  get isAtRest(): boolean {
    return this.#sequences.isAtRest;
  }

  /** @returns what may be written, in order; what is not complete yet comes with a later piece */
  feed(piece: string): string {
    return this.#sequences
      .feed(piece)
      .map((token) => admitted(token, this.#modes))
      .join('');
  }
}

const controls = new Set('\u0007\b\t\n\u000b\f\r\u000e\u000f');

// Without prefix and intermediates: ICH, the cursor, tabs, erasing, inserting, deleting, scrolling, REP, TBC, SGR, DECSTBM.
const plainFinals = new Set('@ABCDEFGHIJKLMPSTXZ`abdefgmrsu');

// DEC private modes that change what is shown: cursor keys, mouse, focus, pastes and the rest change what is sent.
// Reversed screen, origin, wrapping, cursor (blinking, shown), reverse wrapping, margins, the other screen.
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
      // Titles, clipboard, colours, links, images, settings that are asked for, keys that are defined.
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
      // The cursor kept and put back, lines up and down, a tab stop, everything reset.
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
    // Insert mode; the others lock the keyboard, echo it, or change what Enter sends.
    if (final === 'h' || final === 'l') return params === '4' ? whole : '';
    // With five numbers it has the mouse tracked.
    if (final === 'T' && params.includes(';')) return '';
    // A few bytes would have a terminal write for minutes.
    if (final === 'b' && params.length > 4) return '';
    return plainFinals.has(final) ? whole : '';
  }
  // The shape of the cursor; everything reset, gently.
  const isKnown =
    intermediates === ' ' ? final === 'q' && /^\d*$/.test(params) : intermediates + final === '!p' && params === '';
  return prefix === '' && isKnown ? whole : '';
}

/** Text alone, for whoever has no terminal: lines, without anything that moves or colours. */
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
      // A line that is written over is a line of its own here, if there is anything on it; of CR, CR, LF, as terminals get
      // it, one end remains.
      if (this.#heldReturn && said !== '\r' && said !== '\n' && !this.#lineBegins) text += '\n';
      this.#heldReturn = said === '\r';
      if (this.#heldReturn) continue;
      text += said;
      this.#lineBegins = said === '\n';
    }
    return text;
  }
}
