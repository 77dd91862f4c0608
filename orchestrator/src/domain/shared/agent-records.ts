import type { Agent } from '@muster/protocol/http';
import { type Database, withOverrides } from '../../store/database.ts';
import { agentsByIds, type ShownAgent } from '../../store/queries/agents/agents.ts';
import type { AnyQuery } from '../../store/query.ts';
import type { Unit } from '../../store/transaction.ts';

/**
 * An agent as JSON in UTF-8. The connection state and the last-seen time change without a write, so both are
 * parameters.
 */
export class AgentRecord {
  readonly nodeId: string;
  readonly status: Agent['status'];
  /** Name by which the agent can be found; null unless it is approved. */
  readonly name: string | null;
  /** Name for events: the agent's name or, if it has none, its first hostname. */
  readonly label: string;
  readonly #storedLastSeenAt: number;
  #json: Buffer;
  /** Offset of the `connected` value in the JSON. */
  readonly #connectedOffset: number;
  /** The text between the values of `connected` and `last_seen_at`. */
  readonly #between: string;
  #connected = false;
  #lastSeenAt: number;

  constructor(row: ShownAgent) {
    const { node_id, name, status, agent_version, attributes, tags } = row;
    const { connected_at, updated_at, last_seen_at, initial_hostname, initial_ip, pin_source } = row;
    this.nodeId = node_id;
    this.status = status;
    this.name = status === 'approved' ? name : null;
    this.label = name ?? initial_hostname;
    this.#storedLastSeenAt = last_seen_at;
    this.#lastSeenAt = last_seen_at;
    const start = JSON.stringify({ node_id, name, status, agent_version }).slice(0, -1);
    // Copies attributes and tags as JSON, as they are stored, without parsing and serializing them.
    const before = `${start},"attributes":${attributes},"tags":${tags},"connected":`;
    this.#connectedOffset = Buffer.byteLength(before);
    this.#between = `,${JSON.stringify({ connected_at, updated_at }).slice(1, -1)},"last_seen_at":`;
    const after = JSON.stringify({ initial_hostname, initial_ip, pin_source }).slice(1);
    const text = `${before}${this.#parameters()},${after}`;
    // Copies the bytes to separate memory, because a slice of the shared pool would keep the pool alive.
    this.#json = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    this.#json.write(text);
  }

  /** Size in memory, in bytes. */
  get bytes(): number {
    return this.#json.length + fixedBytes;
  }

  /**
   * Returns the agent as JSON in UTF-8.
   * @param lastContact Unix seconds of the last message; null if the agent is not connected
   */
  json(lastContact: number | null): Buffer {
    const connected = lastContact !== null;
    const lastSeenAt = Math.max(lastContact ?? 0, this.#storedLastSeenAt);
    if (connected === this.#connected && lastSeenAt === this.#lastSeenAt) return this.#json;
    const old = this.#json;
    const tail = old.subarray(this.#connectedOffset + this.#parameters().length);
    this.#connected = connected;
    this.#lastSeenAt = lastSeenAt;
    const parameters = this.#parameters();
    const json = Buffer.allocUnsafeSlow(this.#connectedOffset + parameters.length + tail.length);
    old.copy(json, 0, 0, this.#connectedOffset);
    json.write(parameters, this.#connectedOffset, 'latin1');
    tail.copy(json, this.#connectedOffset + parameters.length);
    this.#json = json;
    return json;
  }

  /** Returns the text from the value of `connected` up to the value of `last_seen_at`. */
  #parameters(): string {
    return `${this.#connected}${this.#between}${this.#lastSeenAt}`;
  }
}

/** Approximate size of a record without its JSON. */
const fixedBytes = 700;

/** Maximum size of all records in memory, in bytes. */
const maxTotalBytes = 64 * 1024 * 1024;
/** Maximum number of pages whose ids are kept. */
const maxPages = 256;

/**
 * The records that a statement affects: `one` is the agent in the parameter `node_id`; `any` is any number of agents.
 */
interface Effect {
  readonly of: 'one' | 'any';
  /** Whether agents may be added or removed. */
  readonly ids: boolean;
}

/**
 * Caches agents as JSON. A record is dropped before a write that changes it returns, and all records are dropped when
 * another process may have written to the database.
 */
export class AgentRecords {
  /** The database. Writes through it drop the records that they change. */
  readonly db: Database;
  readonly #records = new Map<string, AgentRecord>();
  readonly #idsByName = new Map<string, string>();
  readonly #effects = new Map<number, Effect | null>();
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #pages = new Map<string, readonly string[]>();
  /** Records of pages from which nothing has been dropped since they were read. */
  readonly #recordsOfPages = new Map<string, readonly AgentRecord[]>();
  #outsideChanges = Number.NaN;
  /** Number of drops. Rows read before a drop are not cached after it. */
  #drops = 0;

  constructor(db: Database, maxBytes = maxTotalBytes) {
    this.#maxBytes = maxBytes;
    this.db = withOverrides(db, { write: (unit) => db.write(unit).finally(() => this.#dropChanged(unit)) });
  }

  /** Returns the record for a node id, or for an approved agent's name; undefined if it is not cached. */
  find(idOrName: string): AgentRecord | undefined {
    this.#dropOutdated();
    return this.#records.get(this.#idsByName.get(idOrName) ?? idOrName);
  }

  /** Returns the records of the agents that exist, in the given order. */
  async load(ids: readonly string[]): Promise<AgentRecord[]> {
    this.#dropOutdated();
    const found = ids.map((id) => this.#records.get(id));
    const missing = ids.filter((_, index) => found[index] === undefined);
    if (missing.length === 0) return found as AgentRecord[];
    const loaded = await this.read(() => this.db.all(agentsByIds, { ids: missing }));
    const byId = new Map(loaded.map((record) => [record.nodeId, record]));
    return ids.flatMap((id, index) => found[index] ?? byId.get(id) ?? []);
  }

  /** Returns the records of the agents that `query` reads, and caches them. */
  async read(query: () => Promise<readonly ShownAgent[]>): Promise<AgentRecord[]> {
    this.#dropOutdated();
    const drops = this.#drops;
    const records = (await query()).map((row) => new AgentRecord(row));
    if (drops === this.#drops) for (const record of records) this.#add(record);
    return records;
  }

  /**
   * Returns a page of the list of all agents, and caches its records.
   * @param key unique key of the page
   * @param query reads the page
   */
  async page(key: string, query: () => Promise<readonly ShownAgent[]>): Promise<readonly AgentRecord[]> {
    this.#dropOutdated();
    const kept = this.#recordsOfPages.get(key);
    if (kept !== undefined) return kept;
    const drops = this.#drops;
    const ids = this.#pages.get(key);
    let records = ids === undefined ? [] : await this.load(ids);
    // An agent may be removed while records are read.
    if (records.length !== ids?.length) records = await this.read(query);
    if (drops === this.#drops) {
      if (this.#pages.size >= maxPages) this.#pages.clear();
      if (this.#recordsOfPages.size >= maxPages) this.#recordsOfPages.clear();
      this.#pages.set(
        key,
        records.map(({ nodeId }) => nodeId),
      );
      // If a page is larger than the cache, some of its records have already been dropped.
      if (records.every((record) => this.#records.get(record.nodeId) === record))
        this.#recordsOfPages.set(key, records);
    }
    return records;
  }

  #add(record: AgentRecord): void {
    this.#drop(record.nodeId);
    this.#records.set(record.nodeId, record);
    if (record.name !== null) this.#idsByName.set(record.name, record.nodeId);
    this.#bytes += record.bytes;
    for (const oldest of this.#records.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#drop(oldest);
    }
  }

  #drop(nodeId: string): void {
    const record = this.#records.get(nodeId);
    if (record === undefined) return;
    // A kept page would keep the dropped record in memory.
    this.#recordsOfPages.clear();
    this.#records.delete(nodeId);
    this.#bytes -= record.bytes;
    if (record.name !== null) this.#idsByName.delete(record.name);
  }

  #dropAll(): void {
    this.#recordsOfPages.clear();
    this.#records.clear();
    this.#idsByName.clear();
    this.#bytes = 0;
  }

  #dropOutdated(): void {
    const changes = this.db.outsideChanges();
    if (changes === this.#outsideChanges) return;
    this.#outsideChanges = changes;
    this.#drops++;
    this.#forgetPages();
    this.#dropAll();
  }

  #forgetPages(): void {
    this.#pages.clear();
    this.#recordsOfPages.clear();
  }

  #dropChanged({ statements }: Unit): void {
    for (const { query, params } of statements) {
      const effect = this.#effectOf(query);
      if (effect === null) continue;
      this.#drops++;
      if (effect.ids) this.#forgetPages();
      if (effect.of === 'one') this.#drop((params as { node_id: string }).node_id);
      else this.#dropAll();
    }
  }

  /** Returns how a query affects the records, from its SQL; null if it does not. */
  #effectOf(query: AnyQuery): Effect | null {
    let effect = this.#effects.get(query.id);
    if (effect === undefined) {
      const { sql, slots } = query.compiled(this.db.kind);
      const [, verb, table] = /\b(insert into|update|delete from) "(agents|agent_tags)"/.exec(sql) ?? [];
      const isOfOne = slots.some((slot) => 'param' in slot && slot.param === 'node_id' && !slot.list);
      effect =
        table === undefined ? null : { of: isOfOne ? 'one' : 'any', ids: table === 'agents' && verb !== 'update' };
      this.#effects.set(query.id, effect);
    }
    return effect;
  }
}
