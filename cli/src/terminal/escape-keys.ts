/**
 * What is typed to leave, as in ssh: `~` at the beginning of a line, then a key. Bytes pass through unchanged, whatever
 * characters they are.
 */

export type Typed =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'leave' | 'detach' | 'help' };

const tilde = 0x7e;
const commands: Readonly<Record<string, 'leave' | 'detach' | 'help'>> = { '.': 'leave', d: 'detach', '?': 'help' };

/**
 * More than this at once was pasted, not typed. What is pasted is text, whatever stands at the beginning of its lines: it
 * arrives as it is, and does not end the session.
 */
const mostTyped = 32;
/** Milliseconds. A large paste is read in pieces, of which some are small; nobody types right behind one. */
const pasteGoesOn = 100;

export class EscapeKeys {
  #lineBegins = true;
  #tilde = false;
  /** When a piece of the last paste came. */
  #pastedAt = Number.NEGATIVE_INFINITY;

  /** What was typed until now reached nobody: whatever comes next is the beginning of a line. */
  beginLine(): void {
    this.#lineBegins = true;
  }

  /**
   * @param bytes as they were read, in one go
   * @param now milliseconds, of a clock that only goes forward
   */
  feed(bytes: Uint8Array, now: number): Typed[] {
    const typed: Typed[] = [];
    const pass = (piece: Uint8Array) => {
      if (piece.length > 0) typed.push({ kind: 'bytes', bytes: piece });
    };
    if (bytes.length > mostTyped || now - this.#pastedAt < pasteGoesOn) {
      this.#pastedAt = now;
      if (this.#tilde) pass(Uint8Array.of(tilde));
      this.#tilde = false;
      pass(bytes);
      this.#lineBegins = endsLine(bytes[bytes.length - 1]);
      return typed;
    }
    let from = 0;
    for (const [at, byte] of bytes.entries()) {
      if (this.#tilde) {
        this.#tilde = false;
        const command = commands[String.fromCharCode(byte)];
        if (command !== undefined) {
          typed.push({ kind: command });
          this.#lineBegins = true;
          from = at + 1;
          continue;
        }
        // `~~` is one; anything else was no command, and the tilde that was held back comes first.
        if (byte !== tilde) pass(Uint8Array.of(tilde));
        from = at;
        this.#lineBegins = endsLine(byte);
        continue;
      }
      if (byte === tilde && this.#lineBegins) {
        pass(bytes.subarray(from, at));
        from = at + 1;
        this.#tilde = true;
        continue;
      }
      this.#lineBegins = endsLine(byte);
    }
    pass(bytes.subarray(from));
    return typed;
  }
}

const endsLine = (byte: number | undefined): boolean => byte === 0x0d || byte === 0x0a;
