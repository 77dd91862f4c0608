import { limits } from '@muster/protocol/wire';

export interface InputLimits {
  readonly windowBytes: number;
  /** Minimum credit in a message, in bytes. At most half of the flow-control window. */
  readonly minCreditBytes: number;
}

const inputLimits: InputLimits = {
  windowBytes: limits.terminalInputWindowBytes,
  minCreditBytes: limits.terminalInputWindowBytes / 4,
};

/**
 * Input that the terminal has not accepted yet. If a program does not read, its input fills the terminal and then this
 * queue, up to the window.
 */
export class InputQueue {
  readonly #limits: InputLimits;
  /** Allocated only while input waits, because most input is passed on directly. */
  #bytes: Buffer | null = null;
  #start = 0;
  #end = 0;
  #outstanding = 0;
  #accepted = 0;

  constructor(options: InputLimits = inputLimits) {
    this.#limits = options;
  }

  get isEmpty(): boolean {
    return this.#bytes === null;
  }

  /**
   * Passes input on, and stores the rest that the terminal does not accept.
   * @param write passes bytes to the terminal and returns how many of them it accepted, counted from the first
   * @returns false if the input exceeds the window
   */
  add(bytes: Uint8Array, write: (bytes: Uint8Array) => number): boolean {
    if (this.#outstanding + bytes.length > this.#limits.windowBytes) return false;
    this.#outstanding += bytes.length;
    const rest = this.#bytes === null ? bytes.subarray(this.#wrote(write(bytes))) : bytes;
    if (rest.length > 0) this.#store(rest);
    return true;
  }

  /**
   * Passes on stored input.
   * @returns whether the terminal accepted any bytes
   */
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

  /**
   * Returns the credit to send now and resets it. Returns 0 while the credit is below `minCreditBytes`; withholding so
   * little cannot block the sender.
   */
  takeCredit(): number {
    const bytes = this.#accepted;
    if (bytes < this.#limits.minCreditBytes) return 0;
    this.#accepted = 0;
    this.#outstanding -= bytes;
    return bytes;
  }

  #wrote(bytes: number): number {
    this.#accepted += bytes;
    return bytes;
  }

  /**
   * Copies the input, because it may be a small part of a large network buffer that would otherwise be kept in memory.
   */
  #store(bytes: Uint8Array): void {
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
