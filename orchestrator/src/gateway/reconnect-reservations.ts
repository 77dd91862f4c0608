/**
 * Duration of a reservation, in milliseconds. If the agent restarts during this time, the new process must wait until
 * the reservation expires.
 */
const reservationMs = 15_000;

/**
 * Reserves the slots of agents that reconnect immediately with a new key. Otherwise, someone with a copied key could
 * connect between the two links and complete the key change.
 */
export class ReconnectReservations {
  /** Reservations by node id, oldest first. */
  readonly #reservations = new Map<string, { instanceId: string; until: number }>();

  /** @param now monotonic time in milliseconds */
  keep(nodeId: string, instanceId: string, now: number): void {
    for (const [old, { until }] of this.#reservations) {
      if (until > now) break;
      this.#reservations.delete(old);
    }
    this.#reservations.delete(nodeId);
    this.#reservations.set(nodeId, { instanceId, until: now + reservationMs });
  }

  /** Reports whether the slot is reserved for a different process of the agent. */
  isReservedForOther(nodeId: string, instanceId: string, now: number): boolean {
    const reservation = this.#reservations.get(nodeId);
    return reservation !== undefined && reservation.until > now && reservation.instanceId !== instanceId;
  }

  /** Removes the reservation of an agent that has reconnected. */
  taken(nodeId: string): void {
    this.#reservations.delete(nodeId);
  }
}
