import { hash } from 'node:crypto';

/** Decides which of the live processes should hold each lease. */
export interface Placement {
  /** Whether other live processes share the leases with this process. */
  readonly shared: boolean;
  /** Monotonic milliseconds at which a process was last found to be gone; before the first time, negative infinity. */
  readonly peerLeftAt: number;
  /** Reports whether this process should hold the lease. */
  isPreferred(lease: string): boolean;
}

/** The placement without other processes. */
export const alone: Placement = { shared: false, peerLeftAt: Number.NEGATIVE_INFINITY, isPreferred: () => true };

/**
 * Returns the process that should hold a lease, by rendezvous hashing: a process that joins or leaves moves only its own
 * leases.
 * @param incarnations the live processes, in any order
 * @returns null if there are none
 */
export function preferredHolder(lease: string, incarnations: readonly string[]): string | null {
  let best: { incarnation: string; score: string } | null = null;
  for (const incarnation of incarnations) {
    const score = hash('sha256', `${lease}\n${incarnation}`);
    if (best === null || score > best.score) best = { incarnation, score };
  }
  return best?.incarnation ?? null;
}
