import { MusterError } from '@muster/protocol';
import type { BoundValue } from './params.ts';

export interface IntakeLimits {
  /** Units that may wait for an answer. */
  readonly maxUnits: number;
  /** Bytes that those may hold; a single unit that no agent caused is let in however large it is. */
  readonly maxBytes: number;
  /** Bytes of one unit that an agent caused. */
  readonly maxAgentUnitBytes: number;
  /** Of `maxBytes`, what units that agents caused may hold together: the rest is for those who ask over the API. */
  readonly maxAgentBytes: number;
}

const mebibyte = 1024 * 1024;

/** Room for ten thousand agents answering at once, and no more memory than a burst of outputs should take. */
export const defaultIntakeLimits: IntakeLimits = {
  maxUnits: 50_000,
  maxBytes: 256 * mebibyte,
  maxAgentUnitBytes: 32 * mebibyte,
  maxAgentBytes: 128 * mebibyte,
};

/**
 * Counts what waits to be written, and turns away what is over the limit. It refuses rather than makes callers wait:
 * they hold a request or an unacknowledged message, and its sender is the one who should come back later.
 */
export class Intake {
  readonly #limits: IntakeLimits;
  #units = 0;
  #bytes = 0;
  #agentBytes = 0;
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

  /**
   * @throws MusterError `storage_unavailable` when full, `draining` when closed, `unit_too_large` when an agent caused it
   *   and no wait would make it fit
   */
  admit(bytes: number, ofAgent = false): void {
    if (this.#closed) throw new MusterError('draining', 'The database is being closed');
    const { maxUnits, maxBytes, maxAgentUnitBytes, maxAgentBytes } = this.#limits;
    if (ofAgent && bytes > maxAgentUnitBytes)
      throw new MusterError(
        'unit_too_large',
        `${bytes} bytes, and one write of an agent may have ${maxAgentUnitBytes}; nothing was changed`,
      );
    const full = this.#units > 0 && this.#bytes + bytes > maxBytes;
    if (this.#units >= maxUnits || full || (ofAgent && this.#agentBytes + bytes > maxAgentBytes))
      throw new MusterError(
        'storage_unavailable',
        `${this.#units} writes (${this.#bytes} bytes) wait for the disk already; nothing was changed`,
      );
    this.#units++;
    this.#bytes += bytes;
    if (ofAgent) this.#agentBytes += bytes;
  }

  release(bytes: number, ofAgent = false): void {
    this.#units--;
    this.#bytes -= bytes;
    if (ofAgent) this.#agentBytes -= bytes;
  }

  close(): void {
    this.#closed = true;
  }
}

/** Roughly what bound values take, in bytes. */
export function sizeOf(values: readonly BoundValue[]): number {
  let bytes = 64;
  for (const value of values) {
    if (typeof value === 'string') bytes += Buffer.byteLength(value) + 16;
    else if (value instanceof Uint8Array) bytes += value.byteLength + 16;
    else if (Array.isArray(value)) bytes += value.reduce((sum: number, item) => sum + String(item).length + 16, 0);
    else bytes += 8;
  }
  return bytes;
}
