/**
 * Which connections a port keeps when more come than it takes. It knows no sockets, addresses or time, so that its rules
 * can be read and tested as they are.
 *
 * A connection whose client has signed in is kept, and so is one of a trusted proxy, which carries many clients. All
 * others are exposed: their network has a share, and within it those that give way first are, in this order,
 *
 * 1. silent: no request came yet;
 * 2. idle: requests were answered, and none is under way;
 * 3. busy: a request is under way.
 *
 * On a full port only networks give way that have at least half as many exposed connections as the one with the most.
 */
const ranks = ['silent', 'idle', 'busy'] as const;
type Rank = (typeof ranks)[number];

/** Why a connection is dropped: its network has its share, or the port has all it takes. */
export type DropReason = 'share' | 'full';

export interface ConnectionLimits {
  /** Connections altogether. */
  readonly connections: number;
  /** Exposed connections of one network. */
  readonly exposedOfNetwork: number;
}

interface Network {
  readonly name: string;
  /** Exposed connections. */
  exposed: number;
  /** In the order in which they came to this rank. */
  readonly byRank: Record<Rank, Set<Entry<unknown>>>;
}

interface Entry<T> {
  readonly connection: T;
  readonly network: Network;
  kept: boolean;
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
   * Takes a connection, if need be in the place of another.
   * @param kept it belongs to a trusted proxy
   * @returns what is to be dropped and why, which may be the connection itself; null: nothing
   */
  add(connection: T, networkName: string, kept: boolean): { connection: T; reason: DropReason } | null {
    const network = this.networks.get(networkName) ?? newNetwork(networkName);
    const reason = this.reasonToDrop(network, kept);
    const victim = reason === null ? null : this.victimOf(reason, network, kept);
    if (reason !== null && victim === null) return { connection, reason };
    if (victim !== null) this.delete(victim.connection);
    // Set here: the network's last connection may just have given way.
    this.networks.set(networkName, network);
    const entry: Entry<T> = { connection, network, kept, spoke: false, requests: 0 };
    this.entries.set(connection, entry);
    this.place(entry);
    return victim === null || reason === null ? null : { connection: victim.connection, reason };
  }

  /** A request came on it, with all its headers. */
  begun(connection: T): void {
    this.change(connection, (entry) => {
      entry.spoke = true;
      entry.requests++;
    });
  }

  /** A request of it was answered. */
  ended(connection: T): void {
    this.change(connection, (entry) => {
      entry.requests = Math.max(0, entry.requests - 1);
    });
  }

  /** Its client has shown a valid session or token: it is not dropped from now on. */
  signedIn(connection: T): void {
    if (this.entries.get(connection)?.kept !== false) return;
    this.change(connection, (entry) => {
      entry.kept = true;
    });
  }

  delete(connection: T): void {
    const entry = this.entries.get(connection);
    if (!entry) return;
    this.entries.delete(connection);
    this.displace(entry);
  }

  private reasonToDrop(network: Network, kept: boolean): DropReason | null {
    if (!kept && network.exposed >= this.limits.exposedOfNetwork) return 'share';
    return this.entries.size >= this.limits.connections ? 'full' : null;
  }

  private victimOf(reason: DropReason, asking: Network, kept: boolean): Entry<T> | null {
    // A busy connection is not dropped for a newer one of its own network.
    if (reason === 'share') return first<T>(asking, 'silent') ?? first<T>(asking, 'idle');
    let most = 0;
    for (const { exposed } of this.networks.values()) most = Math.max(most, exposed);
    for (const rank of ranks) {
      let largest: Network | null = null;
      for (const network of this.networks.values()) {
        if (network.byRank[rank].size === 0 || network.exposed <= (largest?.exposed ?? 0)) continue;
        // A client is silent during its handshake: one of a small network is not dropped while a large network has many.
        if (network.exposed * 2 < most) continue;
        // Nor for a network that has as many itself.
        if (network !== asking && !kept && network.exposed <= asking.exposed) continue;
        largest = network;
      }
      if (largest === null) continue;
      // Nor is a busy one for one of a network that would then have as many itself.
      if (rank === 'busy' && !kept && largest.exposed <= asking.exposed + 1) continue;
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
    if (entry.kept) {
      this.forgetIfEmpty(entry.network);
      return;
    }
    entry.network.exposed++;
    entry.network.byRank[rankOf(entry)].add(entry);
  }

  private displace(entry: Entry<T>): void {
    if (entry.kept) return;
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
