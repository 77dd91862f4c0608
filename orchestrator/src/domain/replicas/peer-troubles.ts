/** Determines which problems with other replicas are reported to operators. */

/** How long a replica that ended unexpectedly is reported as missing, unless it returns; in milliseconds. */
const missingMs = 24 * 3_600_000;

/** The properties of a replica that replicas compare. */
export interface ReplicaFacts {
  readonly name: string;
  readonly version: string;
  /** Null if the replica's release does not store the digest. */
  readonly config_digest: string | null;
}

export interface PeerTrouble {
  readonly name: string;
  readonly trouble: 'missing' | 'version' | 'configuration';
}

interface Peer extends ReplicaFacts {
  readonly incarnation: string;
  readonly draining: 0 | 1 | 2;
}

/** The replicas that ended without being stopped and have not returned. */
export class MissingPeers {
  #peers: readonly Peer[] = [];
  /** When each name was last seen, in monotonic milliseconds. */
  readonly #missing = new Map<string, number>();

  /**
   * Compares the other replicas with the replicas at the last call.
   * @param at monotonic time in milliseconds
   */
  read(peers: readonly Peer[], at: number): void {
    const names = new Set(peers.map(({ name }) => name));
    for (const { name, draining } of this.#peers) if (!names.has(name) && draining === 0) this.#missing.set(name, at);
    for (const [name, since] of this.#missing)
      if (names.has(name) || at - since >= missingMs) this.#missing.delete(name);
    this.#peers = peers;
  }

  get names(): string[] {
    return [...this.#missing.keys()];
  }
}

/** Returns the missing replicas, and those that differ from this replica. */
export function peerTroubles(
  own: ReplicaFacts,
  peers: readonly ReplicaFacts[],
  missing: readonly string[],
): PeerTrouble[] {
  const differs = (peer: ReplicaFacts): PeerTrouble[] => {
    const { name } = peer;
    // Another release may have different settings, so its digest cannot be compared.
    if (peer.version !== own.version) return [{ name, trouble: 'version' }];
    const isOther =
      peer.config_digest !== null && own.config_digest !== null && peer.config_digest !== own.config_digest;
    return isOther ? [{ name, trouble: 'configuration' }] : [];
  };
  return [...missing.map((name): PeerTrouble => ({ name, trouble: 'missing' })), ...peers.flatMap(differs)];
}
