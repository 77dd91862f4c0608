import type { Example } from './inputs.ts';

export interface FuzzTarget {
  readonly examples: readonly Example[];
  /** Maximum size of an input, in bytes. The product refuses larger inputs before it calls the parser. */
  readonly maxBytes: number;
  /** Maximum milliseconds of CPU time for one input. */
  readonly cpuMs: number;
  /** Additional milliseconds of CPU time for each MiB of input. */
  readonly cpuMsPerMiB?: number;
  /** Maximum bytes that one input may allocate. Default: `maxAllocatedBytes`. */
  readonly allocatedBytes?: number;
  /** Parses an input. Throws only for a bug, not for errors that the parser declares for invalid input. */
  run(input: Uint8Array): void | Promise<void>;
}

export const defaultCpuMs = 100;
export const maxAllocatedBytes = 64 * 1024 * 1024;
