/**
 * Detects the keys that leave a session, as in ssh: `~` at the start of a line, followed by a key. Passes all other
 * bytes on unchanged.
 */

export type Typed =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'leave' | 'detach' | 'help' };

const tilde = 0x7e;
const commands: Readonly<Record<string, 'leave' | 'detach' | 'help'>> = { '.': 'leave', d: 'detach', '?': 'help' };

/**
 * Maximum size of a read that is treated as typed keys, in bytes. A larger read is a paste, which is passed on
 * unchanged, so that `~.` in it does not close the session.
 */
const maxTyped = 32;
/** Milliseconds after a paste during which small reads still belong to it, because terminals split a large paste. */
const pasteGoesOn = 100;

export class EscapeKeys {
  #lineBegins = true;
  #tilde = false;
  /** Time of the last chunk of a paste. */
  #pastedAt = Number.NEGATIVE_INFINITY;

  /** Treats the next key as the first in a line, because earlier keys were dropped. */
  beginLine(): void {
    this.#lineBegins = true;
  }

  /**
   * Splits typed bytes into input for the session and commands.
   * @param bytes from one read
   * @param now milliseconds of a monotonic clock
   */
  feed(bytes: Uint8Array, now: number): Typed[] {
    const typed: Typed[] = [];
    const pass = (piece: Uint8Array) => {
      if (piece.length > 0) typed.push({ kind: 'bytes', bytes: piece });
    };
    if (bytes.length > maxTyped || now - this.#pastedAt < pasteGoesOn) {
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
        // `~~` sends one tilde. Before any other key, the withheld tilde is sent.
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
