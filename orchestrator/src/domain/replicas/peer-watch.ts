/**
 * Decides which other processes on the database are no longer alive. Does not compare the clocks of different machines.
 */

/** Milliseconds without a new heartbeat after which a process is closed. */
export const stillMs = 10_000;
/** Milliseconds without a new heartbeat after which a replica counts as not ready. */
export const maxBeatAgeMs = 6_000;
/** Maximum milliseconds between two reads. After a longer gap, this process was suspended and starts over. */
export const maxGapMs = 4_000;

export interface PeerBeat {
  readonly incarnation: string;
  readonly beat: number;
}

export class PeerWatch<Peer extends PeerBeat> {
  #seen = new Map<string, { beat: number; since: number }>();
  #readAt = Number.NEGATIVE_INFINITY;

  /**
   * @param peers the rows of the other processes
   * @param at time before the rows were read, in milliseconds of this process's monotonic clock
   * @returns the peers to close
   */
  read(peers: readonly Peer[], at: number): readonly Peer[] {
    const former = at - this.#readAt > maxGapMs ? new Map<string, never>() : this.#seen;
    this.#readAt = at;
    this.#seen = new Map(
      peers.map(({ incarnation, beat }) => {
        const known = former.get(incarnation);
        return [incarnation, known?.beat === beat ? known : { beat, since: at }];
      }),
    );
    return peers.filter(({ incarnation }) => at - this.#seen.get(incarnation)!.since >= stillMs);
  }

  /**
   * Returns the milliseconds since a new heartbeat of the process was first read; 0 if the process is not known yet.
   * @param at monotonic time in milliseconds
   */
  ageOf(incarnation: string, at: number): number {
    return at - (this.#seen.get(incarnation)?.since ?? at);
  }
}
