import type { Log } from '../../../../lib/src/log.ts';
import type { Database } from '../../store/database.ts';
import {
  closeReplica,
  deleteReplicaKeys,
  insertReplica,
  otherReplicas,
  raiseBeat,
  removeOtherReplicas,
  removeReplica,
  stopReplica,
} from '../../store/replicas.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { MissingPeers, type PeerTrouble, peerTroubles } from './peer-troubles.ts';
import { maxBeatAgeMs, PeerWatch } from './peer-watch.ts';
import { type Placement, preferredHolder } from './placement.ts';
import type { ServerClock } from './server-clock.ts';

/** This process's membership in the group of processes that share the database. */

export interface ReplicaParts {
  readonly db: Database;
  readonly clock: ServerClock;
  readonly log: Log;
  /** An id that no other process ever uses. */
  readonly incarnation: string;
  /** Name of this replica, for operators. */
  readonly name: string;
  readonly version: string;
  /** Returns what the next heartbeat reports. */
  readonly standing: () => Standing;
  /** Called with true when an operator drains this process, and with false when an operator undrains it. */
  readonly onDraining: (draining: boolean) => void;
}

/** The state that a process reports with its heartbeats. */
export interface Standing {
  readonly ready: boolean;
  readonly configDigest: string;
}

export type ReplicaState = 'ready' | 'not_ready' | 'draining';

export interface Replica {
  readonly incarnation: string;
  /** Whether this process is being stopped or drained. */
  readonly draining: boolean;
  /** The preferred placement of leases, according to the last read of the other processes. */
  readonly placement: Placement;
  /**
   * Whether another process could take over agents, according to the last read. Processes of releases that do not
   * report whether they are ready count as ready.
   */
  readonly hasReadyPeer: boolean;
  /**
   * The states of this process, and of the others according to the last read. A process whose last known heartbeat is
   * too old is not ready, even if this process only failed to read its newer heartbeats.
   */
  readonly states: readonly ReplicaState[];
  /** Number of other processes that this one has closed because they sent no heartbeats. */
  readonly closed: number;
  /** Problems with the other processes to report to operators, according to the last read. */
  readonly troubles: readonly PeerTrouble[];
  /** Returns the milliseconds since the last heartbeat of a known process. */
  heartbeatAge(incarnation: string): number;
  /** Monotonic milliseconds at which this process last began to send a heartbeat that succeeded. */
  readonly beatAt: number;
  /**
   * Increments this process's heartbeat counter, and measures the server's time.
   * @throws ReplicaClosed if another process has closed this process
   */
  beat(): Promise<void>;
  /** Reads the other processes, and closes those that are no longer alive. */
  readPeers(): Promise<void>;
  /**
   * Makes the other processes the preferred holders of this process's leases until it leaves. The heartbeats continue.
   */
  prepareToLeave(): Promise<void>;
  /** Leaves the group, so that other processes take over immediately. */
  leave(): Promise<void>;
}

/** Another process has taken over the work of this process, which must exit. */
export class ReplicaClosed extends Error {
  constructor() {
    super('another process has taken over the work of this process, which sent no heartbeat for 10 seconds');
    this.name = 'ReplicaClosed';
  }
}

/** Joins the group of processes on the database. */
export async function joinReplicas(parts: ReplicaParts): Promise<Replica> {
  const { db, clock, log, incarnation, name, version, standing, onDraining } = parts;
  const watch = new PeerWatch<PeerRow>();
  const missing = new MissingPeers();
  const peers = new Peers(incarnation);
  const measure = (rows: readonly { time: number }[], askedAt: number) => {
    for (const { time } of rows) clock.measured(time, askedAt);
    return rows.length > 0;
  };
  const readPeers = async () => {
    const readAt = clock.monotonic();
    const rows = await db.all(otherReplicas, { incarnation });
    peers.read(rows, readAt);
    missing.read(rows, readAt);
    return watch.read(rows, readAt);
  };
  const started_at = Math.floor(clock.now() / 1000);
  const askedAt = clock.monotonic();
  measure((await db.alone(insertReplica, { incarnation, name, version, started_at })).rows, askedAt);
  await readPeers();
  let beatAt = askedAt;
  let leaving = false;
  let closed = 0;
  return {
    incarnation,
    placement: peers,
    get draining() {
      return peers.draining;
    },
    get hasReadyPeer() {
      return peers.others.some(({ draining, ready }) => draining === 0 && ready !== 0);
    },
    get states() {
      const own = { draining: peers.draining ? 1 : 0, ready: standing().ready ? 1 : 0 };
      const at = clock.monotonic();
      const others = peers.others.map((peer) =>
        watch.ageOf(peer.incarnation, at) < maxBeatAgeMs ? peer : { ...peer, ready: 0 },
      );
      return [own, ...others].map(stateOf);
    },
    get closed() {
      return closed;
    },
    get troubles() {
      return peerTroubles({ name, version, config_digest: standing().configDigest }, peers.others, missing.names);
    },
    heartbeatAge: (of) => {
      const at = clock.monotonic();
      return of === incarnation ? at - beatAt : watch.ageOf(of, at);
    },
    get beatAt() {
      return beatAt;
    },
    async beat() {
      const at = clock.monotonic();
      const { ready, configDigest: config_digest } = standing();
      const { rows } = await db.alone(raiseBeat, { incarnation, ready: ready ? 1 : 0, config_digest });
      if (!measure(rows, at)) throw new ReplicaClosed();
      beatAt = at;
      const isDrained = rows.some(({ draining }) => draining === 1);
      if (leaving || isDrained === peers.draining) return;
      peers.draining = isDrained;
      onDraining(isDrained);
    },
    async readPeers() {
      for (const peer of await readPeers()) {
        const { changes } = await db.alone(closeReplica, { incarnation: peer.incarnation, beat: peer.beat });
        if (changes === 0) continue;
        closed++;
        log.warn({ replica: peer.name }, 'replica sent no heartbeat for 10 seconds; other replicas take over its work');
      }
    },
    async prepareToLeave() {
      leaving = true;
      peers.draining = true;
      await db.alone(stopReplica, { incarnation });
    },
    async leave() {
      await db.alone(removeReplica, { incarnation });
    },
  };
}

/** Returns the state of a process. A process of a release that does not report whether it is ready counts as ready. */
const stateOf = ({ draining, ready }: { draining: number; ready: number | null }): ReplicaState =>
  draining !== 0 ? 'draining' : ready === 0 ? 'not_ready' : 'ready';

interface PeerRow {
  readonly incarnation: string;
  readonly name: string;
  readonly version: string;
  readonly beat: number;
  readonly draining: 0 | 1 | 2;
  /** Null if the process's release does not report readiness. */
  readonly ready: 0 | 1 | null;
  readonly config_digest: string | null;
}

/** The live processes at the last read. */
class Peers implements Placement {
  readonly #incarnation: string;
  #others: readonly PeerRow[] = [];
  #preferred = new Map<string, boolean>();
  #draining = false;
  peerLeftAt = Number.NEGATIVE_INFINITY;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  get others(): readonly PeerRow[] {
    return this.#others;
  }

  get shared(): boolean {
    return this.#others.length > 0;
  }

  get draining(): boolean {
    return this.#draining;
  }

  set draining(value: boolean) {
    this.#draining = value;
    this.#preferred.clear();
  }

  /** @param at monotonic milliseconds */
  read(rows: readonly PeerRow[], at: number): void {
    const now = new Set(rows.map(({ incarnation }) => incarnation));
    if (this.#others.some(({ incarnation }) => !now.has(incarnation))) this.peerLeftAt = at;
    this.#others = rows;
    this.#preferred.clear();
  }

  isPreferred(lease: string): boolean {
    const known = this.#preferred.get(lease);
    if (known !== undefined) return known;
    const others = this.#others.filter(({ draining }) => draining === 0).map(({ incarnation }) => incarnation);
    // Without another process that could take over, a process keeps its leases until it has stopped the work.
    const live = this.#draining && others.length > 0 ? others : [...others, this.#incarnation];
    const isPreferred = preferredHolder(lease, live) === this.#incarnation;
    this.#preferred.set(lease, isPreferred);
    return isPreferred;
  }
}

/**
 * Closes all other processes, and replaces the fleet's keys. Call this only while no other process can use the database.
 * @param keys statements that claim this process's keys for the fleet
 */
export async function closeOtherReplicas(
  db: Database,
  incarnation: string,
  keys: readonly Statement[] = [],
): Promise<void> {
  const statements = [statement(removeOtherReplicas, { incarnation }), statement(deleteReplicaKeys, {}), ...keys];
  await db.write({ name: 'replicas/close others', statements });
}
