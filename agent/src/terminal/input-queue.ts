import { limits } from '@muster/protocol/wire';

export interface InputLimits {
  readonly windowBytes: number;
  /** Taken bytes are given back in amounts of at least this, which must be no more than half of the window. */
  readonly giveBackBytes: number;
}

const inputLimits: InputLimits = {
  windowBytes: limits.terminalInputWindowBytes,
  giveBackBytes: limits.terminalInputWindowBytes / 4,
};

/**
 * What was typed and the terminal has not taken yet. A program that does not read fills the terminal, and then this, up
 * to the window.
 */
export class InputQueue {
  readonly #limits: InputLimits;
  /** Only while something waits: most of what is typed goes straight through. */
  #bytes: Buffer | null = null;
  #start = 0;
  #end = 0;
  #outstanding = 0;
  #taken = 0;

  constructor(options: InputLimits = inputLimits) {
    this.#limits = options;
  }

  get isEmpty(): boolean {
    return this.#bytes === null;
  }

  /**
   * @param write returns how many bytes were taken, from the first
   * @returns false when this is more than the window holds
   */
  add(bytes: Uint8Array, write: (bytes: Uint8Array) => number): boolean {
    if (this.#outstanding + bytes.length > this.#limits.windowBytes) return false;
    this.#outstanding += bytes.length;
    const rest = this.#bytes === null ? bytes.subarray(this.#wrote(write(bytes))) : bytes;
    if (rest.length > 0) this.#keep(rest);
    return true;
  }

  /** @returns whether any was taken */
  flush(write: (bytes: Uint8Array) => number): boolean {
    if (this.#bytes === null) return false;
    const written = this.#wrote(write(this.#bytes.subarray(this.#start, this.#end)));
    this.#start += written;
    if (this.#start === this.#end) {
      this.#bytes = null;
      this.#start = 0;
      this.#end = 0;
    }
    return written > 0;
  }

  /** What is to be given back now, and counts as given back then. Few bytes are kept back: nobody waits for them. */
  giveBack(): number {
    const bytes = this.#taken;
    if (bytes < this.#limits.giveBackBytes) return 0;
    this.#taken = 0;
    this.#outstanding -= bytes;
    return bytes;
  }

  #wrote(bytes: number): number {
    this.#taken += bytes;
    return bytes;
  }

  /** A copy: what comes from the network is a small part of a large buffer. */
  #keep(bytes: Uint8Array): void {
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#limits.windowBytes);
    if (this.#end + bytes.length > this.#bytes.length) {
      this.#bytes.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }
}
