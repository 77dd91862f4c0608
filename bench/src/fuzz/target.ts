import type { Example } from './inputs.ts';

/** A parser of input from others. */
export interface FuzzTarget {
  readonly examples: readonly Example[];
  /** Maximum bytes: larger inputs are refused before this call. */
  readonly most: number;
  /** Milliseconds of processor time that one input may take, plus as many for each MiB of it. */
  readonly cpuMs: number;
  readonly cpuMsPerMiB?: number;
  /** Replaces `mostAllocatedBytes`. */
  readonly allocatedBytes?: number;
  /** Throws only for a fault: the function catches errors that are declared for bad input. */
  run(input: Uint8Array): void | Promise<void>;
}

export const usualCpuMs = 100;
export const mostAllocatedBytes = 64 * 1024 * 1024;
