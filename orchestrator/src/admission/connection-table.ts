/**
 * Decides which connections to drop when a port is full. Connections of signed-in clients are protected, as are those
 * of trusted proxies, which carry many clients. All other connections are exposed: each network has a maximum share,
 * and its connections are dropped in this order:
 * 1. silent: no request has arrived;
 * 2. idle: its requests have been served, and none is in progress;
 * 3. busy: a request is in progress.
 *
 * When the port is full, a network loses connections only if it has at least half as many exposed connections as the
 * largest network.
 */

const ranks = ['silent', 'idle', 'busy'] as const;
type Rank = (typeof ranks)[number];

/** The reason for dropping a connection: its network has exceeded its share, or the port is full. */
export type DropReason = 'share' | 'full';

export interface ConnectionLimits {
  readonly connections: number;
  /** Maximum number of exposed connections per network. */
  readonly exposedOfNetwork: number;
}

interface Network {
  readonly name: string;
  exposed: number;
  /** Connections by rank, in the order in which they entered the rank. */
  readonly byRank: Record<Rank, Set<Entry<unknown>>>;
}

interface Entry<T> {
  readonly connection: T;
  readonly network: Network;
  isProtected: boolean;
  spoke: boolean;
  requests: number;
}

export class ConnectionTable<T> {
  private readonly limits: ConnectionLimits;
  private readonly entries = new Map<T, Entry<T>>();
  private readonly networks = new Map<string, Network>();

  constructor(limits: ConnectionLimits) {
    this.limits = limits;
  }

  get size(): number {
    return this.entries.size;
  }

  /**
   * Adds a connection, and drops one if necessary.
   * @param isProtected whether the connection belongs to a trusted proxy
   * @returns the connection to drop, which may be the new connection, and the reason; null if none
   */
  add(connection: T, networkName: string, isProtected: boolean): { connection: T; reason: DropReason } | null {
    const network = this.networks.get(networkName) ?? newNetwork(networkName);
    const reason = this.reasonToDrop(network, isProtected);
    const victim = reason === null ? null : this.victimOf(reason, network, isProtected);
    if (reason !== null && victim === null) return { connection, reason };
    if (victim !== null) this.delete(victim.connection);
    // `delete` removes the network together with its last connection.
    this.networks.set(networkName, network);
    const entry: Entry<T> = { connection, network, isProtected, spoke: false, requests: 0 };
    this.entries.set(connection, entry);
    this.place(entry);
    return victim === null || reason === null ? null : { connection: victim.connection, reason };
  }

  /**
   * Records that the headers of a request have arrived.
   * @returns whether the caller must call `ended`; false for protected connections, which have no rank
   */
  requestReceived(connection: T): boolean {
    const entry = this.entries.get(connection);
    if (entry === undefined || entry.isProtected) return false;
    this.change(connection, (entry) => {
      entry.spoke = true;
      entry.requests++;
    });
    return true;
  }

  /** Records that a response was sent. */
  ended(connection: T): void {
    this.change(connection, (entry) => {
      entry.requests = Math.max(0, entry.requests - 1);
    });
  }

  /** Protects the connection of a client that presented a valid session or token. */
  signedIn(connection: T): void {
    if (this.entries.get(connection)?.isProtected !== false) return;
    this.change(connection, (entry) => {
      entry.isProtected = true;
    });
  }

  delete(connection: T): void {
    const entry = this.entries.get(connection);
    if (!entry) return;
    this.entries.delete(connection);
    this.displace(entry);
  }

  private reasonToDrop(network: Network, isProtected: boolean): DropReason | null {
    if (!isProtected && network.exposed >= this.limits.exposedOfNetwork) return 'share';
    return this.entries.size >= this.limits.connections ? 'full' : null;
  }

  private victimOf(reason: DropReason, asking: Network, isProtected: boolean): Entry<T> | null {
    // New connections from a network must not replace its busy connections.
    if (reason === 'share') return first<T>(asking, 'silent') ?? first<T>(asking, 'idle');
    let maxExposed = 0;
    for (const { exposed } of this.networks.values()) maxExposed = Math.max(maxExposed, exposed);
    for (const rank of ranks) {
      let largest: Network | null = null;
      for (const network of this.networks.values()) {
        if (network.byRank[rank].size === 0 || network.exposed <= (largest?.exposed ?? 0)) continue;
        // Clients are silent during their handshake. A small network must not lose connections in a handshake while a
        // large network has many.
        if (network.exposed * 2 < maxExposed) continue;
        // Drops a connection only from a network with more connections than the requesting network.
        if (network !== asking && !isProtected && network.exposed <= asking.exposed) continue;
        largest = network;
      }
      if (largest === null) continue;
      // Drops a busy connection only if the other network still has fewer connections afterward.
      if (rank === 'busy' && !isProtected && largest.exposed <= asking.exposed + 1) continue;
      return first<T>(largest, rank);
    }
    return null;
  }

  private change(connection: T, apply: (entry: Entry<T>) => void): void {
    const entry = this.entries.get(connection);
    if (!entry) return;
    this.displace(entry);
    apply(entry);
    this.networks.set(entry.network.name, entry.network);
    this.place(entry);
  }

  private place(entry: Entry<T>): void {
    if (entry.isProtected) {
      this.forgetIfEmpty(entry.network);
      return;
    }
    entry.network.exposed++;
    entry.network.byRank[rankOf(entry)].add(entry);
  }

  private displace(entry: Entry<T>): void {
    if (entry.isProtected) return;
    entry.network.exposed--;
    entry.network.byRank[rankOf(entry)].delete(entry);
    this.forgetIfEmpty(entry.network);
  }

  private forgetIfEmpty(network: Network): void {
    if (network.exposed === 0) this.networks.delete(network.name);
  }
}

const newNetwork = (name: string): Network => ({
  name,
  exposed: 0,
  byRank: { silent: new Set(), idle: new Set(), busy: new Set() },
});

const rankOf = ({ spoke, requests }: Entry<unknown>): Rank => (!spoke ? 'silent' : requests > 0 ? 'busy' : 'idle');

const first = <T>({ byRank }: Network, rank: Rank): Entry<T> | null =>
  (byRank[rank].values().next().value as Entry<T> | undefined) ?? null;
