/** For so long the place of an agent that said that it comes back is kept: also from itself, should it be killed in that moment. */
const keptMs = 15_000;

/**
 * Places of agents that left to come back at once under a new key. Whoever has a copy of the former key would otherwise
 * come in between the two links, each time that it is changed: and then be the one who changes it.
 */
export class KeptPlaces {
  /** By node id, the oldest first. */
  readonly #kept = new Map<string, { instanceId: string; until: number }>();

  /** @param now monotonic milliseconds */
  keep(nodeId: string, instanceId: string, now: number): void {
    for (const [old, { until }] of this.#kept) {
      if (until > now) break;
      this.#kept.delete(old);
    }
    this.#kept.delete(nodeId);
    this.#kept.set(nodeId, { instanceId, until: now + keptMs });
  }

  /** Whether the place is kept for another process than this one. */
  isKeptFrom(nodeId: string, instanceId: string, now: number): boolean {
    const kept = this.#kept.get(nodeId);
    return kept !== undefined && kept.until > now && kept.instanceId !== instanceId;
  }

  /** The agent is there. */
  taken(nodeId: string): void {
    this.#kept.delete(nodeId);
  }
}
