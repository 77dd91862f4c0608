/**
 * Detects the keys that leave a session, as in ssh: `~` at the start of a line, then a key. All other bytes pass
 * unchanged.
 */

export type Typed =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'leave' | 'detach' | 'help' };

const tilde = 0x7e;
const commands: Readonly<Record<string, 'leave' | 'detach' | 'help'>> = { '.': 'leave', d: 'detach', '?': 'help' };

/** More bytes at once are pasted. Pasted text passes unchanged, so that a `~.` in it does not end the session. */
const mostTyped = 32;
/** Milliseconds. A large paste arrives in pieces, some of them small; typing follows later. */
const pasteGoesOn = 100;

export class EscapeKeys {
  #lineBegins = true;
  #tilde = false;
  /** Time of the last piece of a paste. */
  #pastedAt = Number.NEGATIVE_INFINITY;

  /** Treats the next key as the start of a line, since earlier keys were dropped. */
  beginLine(): void {
    this.#lineBegins = true;
  }

  /**
   * @param bytes from one read
   * @param now milliseconds of a monotonic clock
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
        // `~~` is one tilde. For any other key, sends the held tilde first.
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
