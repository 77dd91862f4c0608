import { MusterError } from '@muster/protocol';
import type { BoundValue } from './params.ts';

export interface IntakeLimits {
  /** Units that may wait for an answer. */
  readonly maxUnits: number;
  /** Bytes that those may hold; a single unit is let in however large it is. */
  readonly maxBytes: number;
}

/** Room for ten thousand agents answering at once, and no more memory than a burst of outputs should take. */
export const defaultIntakeLimits: IntakeLimits = { maxUnits: 50_000, maxBytes: 256 * 1024 * 1024 };

/**
 * Counts what waits to be written, and turns away what is over the limit. It refuses rather than makes callers wait:
 * they hold a request or an unacknowledged message, and its sender is the one who should come back later.
 */
export class Intake {
  readonly #limits: IntakeLimits;
  #units = 0;
  #bytes = 0;
  #closed = false;

  constructor(limits: IntakeLimits) {
    this.#limits = limits;
  }

  get units(): number {
    return this.#units;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws MusterError `storage_unavailable` when full, `draining` when closed */
  admit(bytes: number): void {
    if (this.#closed) throw new MusterError('draining', 'The database is being closed');
    if (this.#units >= this.#limits.maxUnits || (this.#units > 0 && this.#bytes + bytes > this.#limits.maxBytes))
      throw new MusterError(
        'storage_unavailable',
        `${this.#units} writes (${this.#bytes} bytes) wait for the disk already; nothing was changed`,
      );
    this.#units++;
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#units--;
    this.#bytes -= bytes;
  }

  close(): void {
    this.#closed = true;
  }
}

/** Roughly what bound values take in memory. */
export function sizeOf(values: readonly BoundValue[]): number {
  let bytes = 64;
  for (const value of values) {
    if (typeof value === 'string') bytes += value.length + 16;
    else if (value instanceof Uint8Array) bytes += value.byteLength + 16;
    else if (Array.isArray(value)) bytes += value.reduce((sum: number, item) => sum + String(item).length + 16, 0);
    else bytes += 8;
  }
  return bytes;
}
