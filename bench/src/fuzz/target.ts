import type { Example } from './inputs.ts';

/** One thing that takes what others send. */
export interface FuzzTarget {
  readonly examples: readonly Example[];
  /** Bytes: larger inputs are refused before this is called. */
  readonly most: number;
  /** Milliseconds of processor time that one input may take, and as many more for each MiB of it. */
  readonly cpuMs: number;
  readonly cpuMsPerMiB?: number;
  /** Instead of `mostAllocatedBytes`. */
  readonly allocatedBytes?: number;
  /** Throws for nothing but a fault: errors that are declared for bad input are caught in here. */
  run(input: Uint8Array): void | Promise<void>;
}

export const usualCpuMs = 100;
export const mostAllocatedBytes = 64 * 1024 * 1024;
