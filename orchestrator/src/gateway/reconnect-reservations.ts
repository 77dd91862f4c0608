/** Milliseconds for which a slot is reserved. If the agent is killed during this time, its next process must wait as well. */
const keptMs = 15_000;

/**
 * Reserved slots of agents that reconnect immediately under a new key. Otherwise the owner of a copied former key could connect
 * between the two links at each key change, and take over the change.
 */
export class KeptPlaces {
  /** Reservations by node id, the oldest first. */
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

  /** Whether the slot is reserved for another process of the agent. */
  isKeptFrom(nodeId: string, instanceId: string, now: number): boolean {
    const kept = this.#kept.get(nodeId);
    return kept !== undefined && kept.until > now && kept.instanceId !== instanceId;
  }

  /** Removes the reservation of an agent that has reconnected. */
  taken(nodeId: string): void {
    this.#kept.delete(nodeId);
  }
}
