import type { Hint } from '../../bus/bus.ts';
import { changedLinks, claimedLinks, contactsSince } from '../../store/queries/agents/agent-links.ts';
import { otherReplicas } from '../../store/replicas.ts';
import { ReplicaClosed } from '../replicas/replicas.ts';
import type { Context, OtherReplica } from '../shared/context.ts';
import { type Contacts, contactKey, decodeContacts } from './contacts.ts';

/** Seconds between two reads of all claims, which repair the view. */
const reconcileSecs = 30;
/** Maximum number of claims in one read. */
const pageSize = 5_000;
/**
 * Maximum age of the stored contacts that are read, in seconds. Higher than 15, because processes store their contacts
 * every 15 seconds.
 */
const contactsSecs = 20;

/** A change to an agent's link or record. */
export interface LinkChange {
  readonly node_id: string;
  /** The process that has the agent's newest link; null if the agent has none. */
  readonly link_incarnation: string | null;
  /** The probe request of another process for the link. */
  readonly link_probe: string | null;
  /** What changed, for listeners in this process; null if this process changed it. */
  readonly hint: Hint | null;
}

/**
 * The agent links of all processes that share the database, read from the rows about once a second. A link counts as
 * long as the process that holds it is alive.
 */
export class LinkView {
  readonly #context: Pick<Context, 'db' | 'incarnation' | 'now' | 'steadyNow'>;
  /** The process that claimed each agent's link, by node ID. */
  #claims = new Map<string, string>();
  /** The number of links of each process. */
  #counts = new Map<string, number>();
  #peers: ReadonlyMap<string, OtherReplica> = new Map();
  /** Processes that have ended, and whose agents have not been reported yet. */
  #left = new Set<string>();
  #contacts = new Map<string, { readonly at: number; readonly contacts: Contacts }>();
  #mark = 0;
  /** The changes in the last read, by node ID. The next read may return them again. */
  #seen = new Map<string, number>();
  #reconciledAt = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<Context, 'db' | 'incarnation' | 'now' | 'steadyNow'>) {
    this.#context = context;
  }

  /** Number of agents that are connected to other live processes. */
  get count(): number {
    let count = 0;
    for (const incarnation of this.#peers.keys()) count += this.#counts.get(incarnation) ?? 0;
    return count;
  }

  /** Returns the number of agents that are connected to a process, according to the rows. */
  countOf(incarnation: string): number {
    return this.#counts.get(incarnation) ?? 0;
  }

  get peers(): Iterable<OtherReplica> {
    return this.#peers.values();
  }

  /** Returns the other live process that has the agent's newest link; null if there is none. */
  ownerOf(nodeId: string): OtherReplica | null {
    const incarnation = this.#claims.get(nodeId);
    return (incarnation !== undefined && this.#peers.get(incarnation)) || null;
  }

  /**
   * Returns when another process last heard from its agent, in Unix seconds: 0 if that is not known yet, and null if no
   * other process has the agent's link.
   */
  heardAt(nodeId: string): number | null {
    const owner = this.ownerOf(nodeId);
    return owner && (this.#contactOf(owner, nodeId)?.heardAt ?? 0);
  }

  /** Returns the seconds that the clock of another process's agent is ahead; 0 if that is not known. */
  clockAheadSecs(nodeId: string): number {
    const owner = this.ownerOf(nodeId);
    return (owner && this.#contactOf(owner, nodeId)?.ahead) || 0;
  }

  #contactOf({ incarnation }: OtherReplica, nodeId: string) {
    return this.#contacts.get(incarnation)?.contacts.get(contactKey(nodeId));
  }

  /**
   * Reads the changes since the last read. The first call reads all links. Not reentrant.
   * @returns the changes, and, after a read of all links, the claims of this process
   * @throws ReplicaClosed if another process has closed this process
   */
  async read(): Promise<{ readonly changes: readonly LinkChange[]; readonly own: readonly string[] | null }> {
    const { db, incarnation, steadyNow } = this.#context;
    // Reads and heartbeats use different connections, so this process may notice its end only here.
    const live = await db.all(otherReplicas, { incarnation: '' });
    if (live.every((process) => process.incarnation !== incarnation)) throw new ReplicaClosed();
    const peers = live.filter((process) => process.incarnation !== incarnation);
    const former = this.#peers.keys();
    this.#peers = new Map(peers.map((peer) => [peer.incarnation, peer]));
    for (const known of former) if (!this.#peers.has(known)) this.#left.add(known);
    const isFirst = this.#mark === 0;
    const startedAt = steadyNow();
    const reconciles = startedAt - this.#reconciledAt >= reconcileSecs * 1000;
    // Later calls reread the changes since this mark.
    const from = isFirst ? await this.#readMark() : this.#mark;
    const all = reconciles ? await this.#readClaims() : null;
    // Hints compare the changes with the previous claims.
    const changes = await this.#readChanges(from, all);
    if (all !== null) this.#reconciledAt = startedAt;
    changes.push(...this.#departures());
    for (const known of this.#contacts.keys()) if (!this.#peers.has(known)) this.#contacts.delete(known);
    return { changes, own: all?.own ?? null };
  }

  /** Returns a change for each agent whose link was held by a process that has ended. */
  #departures(): LinkChange[] {
    if (this.#left.size === 0) return [];
    const departures: LinkChange[] = [];
    for (const [node_id, link_incarnation] of this.#claims) {
      if (!this.#left.has(link_incarnation)) continue;
      const contact = this.#contacts.get(link_incarnation)?.contacts.get(contactKey(node_id));
      const heard_at = contact?.heardAt ?? Math.floor(this.#context.now() / 1000);
      const hint: Hint = { type: 'agent_departed', node_id, heard_at };
      departures.push({ node_id, link_incarnation, link_probe: null, hint });
    }
    this.#left.clear();
    return departures;
  }

  async readContacts(): Promise<void> {
    const { db, incarnation, now } = this.#context;
    const since = Math.floor(now() / 1000) - contactsSecs;
    for (const row of await db.all(contactsSince, { incarnation, since }))
      if (this.#contacts.get(row.incarnation)?.at !== row.at)
        this.#contacts.set(row.incarnation, { at: row.at, contacts: decodeContacts(row.contacts, row.at) });
  }

  async #readMark(): Promise<number> {
    const [row] = await this.#context.db.all(changedLinks, { since: Number.MAX_SAFE_INTEGER });
    return row!.mark;
  }

  /** @param all claims that were already read, which replace the known claims */
  async #readChanges(since: number, all: Claims | null): Promise<LinkChange[]> {
    const rows = await this.#context.db.all(changedLinks, { since });
    const former = this.#seen;
    this.#seen = new Map();
    const formerClaims = this.#claims;
    if (all !== null) [this.#claims, this.#counts] = [all.claims, all.counts];
    const changes: LinkChange[] = [];
    for (const { mark, node_id, link_incarnation, link_change, link_probe, last_seen_at } of rows) {
      this.#mark = mark;
      if (node_id === null || link_change === null) continue;
      this.#seen.set(node_id, link_change);
      const hint = this.#hintOf(node_id, formerClaims.get(node_id) ?? null, link_incarnation, last_seen_at ?? 0);
      this.#claim(node_id, link_incarnation);
      if (former.get(node_id) !== link_change) changes.push({ node_id, link_incarnation, link_probe, hint });
    }
    return changes;
  }

  #hintOf(node_id: string, former: string | null, owner: string | null, heard_at: number): Hint | null {
    // This process announced its own links when they opened. Another process may have changed the agent since, for example
    // approved it, which is part of the same change of the row.
    if (owner === former || owner === this.#context.incarnation) return { type: 'agent_changed', node_id };
    if (owner !== null) return { type: 'agent_linked', node_id };
    return former === this.#context.incarnation ? null : { type: 'agent_departed', node_id, heard_at };
  }

  #claim(nodeId: string, incarnation: string | null): void {
    const former = this.#claims.get(nodeId);
    if (former !== undefined) this.#counts.set(former, this.#counts.get(former)! - 1);
    if (incarnation === null) this.#claims.delete(nodeId);
    else {
      this.#claims.set(nodeId, incarnation);
      this.#counts.set(incarnation, (this.#counts.get(incarnation) ?? 0) + 1);
    }
  }

  async #readClaims(): Promise<Claims> {
    const { db, incarnation } = this.#context;
    const all: Claims = { claims: new Map(), counts: new Map(), own: [] };
    for (let after = ''; ; ) {
      const rows = await db.all(claimedLinks, { after, limit: pageSize });
      for (const { node_id, link_incarnation } of rows) {
        if (link_incarnation === incarnation) all.own.push(node_id);
        all.claims.set(node_id, link_incarnation!);
        all.counts.set(link_incarnation!, (all.counts.get(link_incarnation!) ?? 0) + 1);
      }
      if (rows.length < pageSize) return all;
      after = rows.at(-1)!.node_id;
    }
  }
}

/** All claimed links, and their number for each process. */
interface Claims {
  readonly claims: Map<string, string>;
  readonly counts: Map<string, number>;
  /** The agents whose links this process has claimed. */
  readonly own: string[];
}
