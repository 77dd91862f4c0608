import { MusterError } from '@muster/protocol';
import type { BoundValue } from './params.ts';

export interface WriteQueueLimits {
  /** Maximum number of pending writes. */
  readonly maxUnits: number;
  /**
   * Maximum total size of pending writes, in bytes. If the queue is empty, a write that was not caused by an agent may
   * exceed this limit.
   */
  readonly maxBytes: number;
  /** Maximum size of a write that an agent caused, in bytes. */
  readonly maxAgentUnitBytes: number;
  /** Maximum total size of pending writes that agents caused, in bytes. The rest of `maxBytes` is for API requests. */
  readonly maxAgentBytes: number;
}

const mebibyte = 1024 * 1024;

/** Limits that allow ten thousand agents to report at the same time with bounded memory. */
export const defaultWriteQueueLimits: WriteQueueLimits = {
  maxUnits: 50_000,
  maxBytes: 256 * mebibyte,
  maxAgentUnitBytes: 32 * mebibyte,
  maxAgentBytes: 128 * mebibyte,
};

/**
 * Counts queued writes and refuses those beyond the limits. Does not make callers wait, because each waiting caller
 * would hold a request or an unacknowledged message in memory. Instead, the sender retries.
 */
export class WriteQueueLimiter {
  readonly #limits: WriteQueueLimits;
  #units = 0;
  #bytes = 0;
  #agentBytes = 0;
  #closed = false;

  constructor(limits: WriteQueueLimits) {
    this.#limits = limits;
  }

  get units(): number {
    return this.#units;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds a write to the counts.
   * @throws MusterError `storage_unavailable` if the queue is full, `draining` if it is closed, or `unit_too_large` if
   *   an agent's write exceeds its limit, so that a retry cannot succeed
   */
  admit(bytes: number, ofAgent = false): void {
    if (this.#closed) throw new MusterError('draining', 'The database is being closed');
    const { maxUnits, maxBytes, maxAgentUnitBytes, maxAgentBytes } = this.#limits;
    if (ofAgent && bytes > maxAgentUnitBytes)
      throw new MusterError(
        'unit_too_large',
        `The write has ${bytes} bytes, but a write for an agent may have at most ${maxAgentUnitBytes}; nothing was changed`,
      );
    const full = this.#units > 0 && this.#bytes + bytes > maxBytes;
    if (this.#units >= maxUnits || full || (ofAgent && this.#agentBytes + bytes > maxAgentBytes))
      throw new MusterError(
        'storage_unavailable',
        `${this.#units} writes (${this.#bytes} bytes) are already queued; nothing was changed`,
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

/** Returns the approximate size of bound values in bytes. */
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
