/** Duration of a reservation, in milliseconds. If the agent restarts during it, its new process must wait, too. */
const keptMs = 15_000;

/**
 * Reserves the slots of agents that reconnect immediately with a new key. Otherwise, the owner of a copied key could
 * connect between the two links, and take over the key change.
 */
export class KeptPlaces {
  /** Reservations by node id, oldest first. */
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

  /** Reports whether the slot is reserved for another process of the agent. */
  isKeptFrom(nodeId: string, instanceId: string, now: number): boolean {
    const kept = this.#kept.get(nodeId);
    return kept !== undefined && kept.until > now && kept.instanceId !== instanceId;
  }

  /** Removes the reservation of an agent that has reconnected. */
  taken(nodeId: string): void {
    this.#kept.delete(nodeId);
  }
}
