/**
 * Splits terminal output into text and control sequences, as a terminal does (ECMA-48, and the VT500 parser by Paul
 * Williams). Accepts chunks that are cut at any position.
 */

export type Token =
  | { readonly kind: 'text'; readonly text: string }
  /** A C0 control character or DEL. */
  | { readonly kind: 'control'; readonly character: string }
  /** ESC, intermediate characters, final character. */
  | { readonly kind: 'escape'; readonly intermediates: string; readonly final: string }
  | {
      readonly kind: 'csi';
      /** The character `?`, `>`, `<`, or `=`; or empty. */
      readonly prefix: string;
      readonly params: string;
      readonly intermediates: string;
      readonly final: string;
    }
  /** OSC, DCS, SOS, PM, or APC, with the data before its terminator. */
  | { readonly kind: 'string'; readonly introducer: string; readonly data: string };

type State = 'ground' | 'escape' | 'csi' | 'csi_ignore' | 'string' | 'string_escape';

/** Longer sequences are truncated, because no terminal needs more. */
const maxData = 4096;
const maxParams = 256;

const introducers: Readonly<Record<string, string>> = { ']': 'osc', P: 'dcs', X: 'sos', '^': 'pm', _: 'apc' };

export class ControlSequences {
  /**
   * Whether U+0080 to U+009F are control characters. False if they are bytes of characters that have not been decoded.
   */
  readonly #c1: boolean;
  #state: State = 'ground';
  #intermediates = '';
  #prefix = '';
  #params = '';
  #introducer = '';
  #data = '';

  constructor(options: { c1: boolean }) {
    this.#c1 = options.c1;
  }

  /** True if no sequence is incomplete. */
  get isAtRest(): boolean {
    return this.#state === 'ground';
  }

  /**
   * Parses a chunk.
   * @returns the tokens that it completes, in order
   */
  feed(piece: string): Token[] {
    const tokens: Token[] = [];
    let textFrom = -1;
    const endText = (at: number) => {
      if (textFrom >= 0) tokens.push({ kind: 'text', text: piece.slice(textFrom, at) });
      textFrom = -1;
    };
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at);
      const isControl = code < 0x20 || code === 0x7f || (this.#c1 && code >= 0x80 && code <= 0x9f);
      if (this.#state === 'ground' && !isControl) {
        if (textFrom < 0) textFrom = at;
        continue;
      }
      endText(at);
      this.#step(piece.charAt(at), code, tokens);
    }
    endText(piece.length);
    return tokens;
  }

  #step(character: string, code: number, tokens: Token[]): void {
    // CAN and SUB abort any sequence. ESC starts a new sequence, or is the first half of a string terminator.
    if (code === 0x18 || code === 0x1a) {
      this.#state = 'ground';
      return;
    }
    if (code === 0x1b) {
      if (this.#state === 'string') this.#state = 'string_escape';
      else this.#begin('escape');
      return;
    }
    if (this.#c1 && code >= 0x80 && code <= 0x9f) {
      // A C1 character is equivalent to ESC and the character 64 code points below. ST terminates a string.
      if (this.#state === 'string' || this.#state === 'string_escape') {
        if (code === 0x9c) this.#endString(tokens);
        return;
      }
      this.#begin('escape');
      this.#escape(String.fromCharCode(code - 0x40), tokens);
      return;
    }
    switch (this.#state) {
      case 'string':
        if (code === 0x07 && this.#introducer === 'osc') this.#endString(tokens);
        else if (this.#data.length < maxData) this.#data += character;
        return;
      case 'string_escape':
        if (character === '\\') this.#endString(tokens);
        else {
          // Drops the unterminated string and starts a new sequence.
          this.#begin('escape');
          this.#step(character, code, tokens);
        }
        return;
      default:
    }
    if (code < 0x20 || code === 0x7f) {
      // Terminals execute a control character within a sequence immediately, as if it came before the sequence.
      tokens.push({ kind: 'control', character });
      return;
    }
    if (this.#state === 'escape') this.#escape(character, tokens);
    else if (this.#state === 'csi' || this.#state === 'csi_ignore') this.#csi(character, code, tokens);
    else tokens.push({ kind: 'text', text: character });
  }

  #begin(state: State): void {
    this.#state = state;
    this.#intermediates = '';
    this.#prefix = '';
    this.#params = '';
    this.#data = '';
  }

  #escape(character: string, tokens: Token[]): void {
    if (character >= ' ' && character <= '/') {
      if (this.#intermediates.length < 4) this.#intermediates += character;
      return;
    }
    if (this.#intermediates === '') {
      if (character === '[') {
        this.#begin('csi');
        return;
      }
      const introducer = introducers[character];
      if (introducer !== undefined) {
        this.#begin('string');
        this.#introducer = introducer;
        return;
      }
    }
    const intermediates = this.#intermediates;
    this.#state = 'ground';
    // Any other character aborts the sequence.
    if (character >= '0' && character <= '~') tokens.push({ kind: 'escape', intermediates, final: character });
  }

  #csi(character: string, code: number, tokens: Token[]): void {
    if (character >= '@' && character <= '~') {
      const ignored = this.#state === 'csi_ignore';
      this.#state = 'ground';
      if (ignored) return;
      const [prefix, params, intermediates] = [this.#prefix, this.#params, this.#intermediates];
      tokens.push({ kind: 'csi', prefix, params, intermediates, final: character });
    } else if (code > 0x7f) {
      this.#state = 'ground';
    } else if (character >= ' ' && character <= '/') {
      if (this.#intermediates.length < 4) this.#intermediates += character;
    } else if (character >= '<') {
      if (this.#params === '' && this.#prefix === '' && this.#intermediates === '') this.#prefix = character;
      else this.#state = 'csi_ignore';
    } else if (this.#intermediates !== '' || this.#params.length >= maxParams) {
      this.#state = 'csi_ignore';
    } else {
      this.#params += character;
    }
  }

  #endString(tokens: Token[]): void {
    tokens.push({ kind: 'string', introducer: this.#introducer, data: this.#data });
    this.#state = 'ground';
    this.#data = '';
  }
}
