import { lstatSync, mkdirSync } from 'node:fs';
import { HostFailure } from '../host/failure.ts';
import { makeDirectoryPrivate } from '../host/files/ownership.ts';
import type { Json } from '../resources/provider/provider.ts';
import { checkpoint, replayInto } from './checkpoint.ts';
import { type ContentStore, openContentStore } from './content-store.ts';
import { JournalLog } from './log.ts';
import { emptyState, type JournalEvent, type JournalState, reduce } from './state.ts';

/** A journal shorter than this is not worth rewriting. Bytes. */
const compactionFloor = 4 * 1024 * 1024;

/** The agent's memory: a log and the state it adds up to. */
export class Journal {
  readonly state: JournalState;
  readonly copies: ContentStore;
  readonly #log: JournalLog;
  readonly #crashPoint: (name: string) => void;
  /** Size of the log right after it was last rewritten. */
  #base: number;
  #visibleSeq: number;

  private constructor(state: JournalState, log: JournalLog, copies: ContentStore, crashPoint: (name: string) => void) {
    this.state = state;
    this.#log = log;
    this.copies = copies;
    this.#crashPoint = crashPoint;
    this.#base = log.size;
    this.#visibleSeq = state.lastSeq;
  }

  /**
   * @param dataDir    the agent's data directory
   * @param crashPoint called right before and right after each durable step
   * @param damaged    told what is wrong with the journal that does not keep it from being used
   * @throws HostFailure when a directory has too loose a mode or the journal cannot be read
   */
  static async open(
    dataDir: string,
    crashPoint: (name: string) => void,
    damaged: (detail: string) => void,
  ): Promise<Journal> {
    privateDirectory(dataDir);
    privateDirectory(`${dataDir}/state`);
    privateDirectory(`${dataDir}/state/before`);
    const state = emptyState();
    const log = JournalLog.open(`${dataDir}/state`, replayInto(state), damaged);
    const journal = new Journal(state, log, openContentStore(`${dataDir}/state/before`), crashPoint);
    if (log.size === 0) await journal.compact();
    else if (log.size > compactionFloor) {
      // What there is will do: a full disk must not keep the agent from starting.
      await journal.compact().catch((error: Error) => damaged(error.message));
    }
    return journal;
  }

  /**
   * Records events as one line: all of them are there after a crash, or none.
   * @param name of the step, for the crash points
   */
  record(name: string, events: JournalEvent[]): void {
    if (events.length === 0) return;
    this.#crashPoint(`${name}:before`);
    this.#log.append(events);
    for (const event of events) reduce(this.state, event);
    this.#crashPoint(`${name}:after`);
  }

  /** Makes what is recorded so far last. @returns whether reports became visible that were not before */
  async sync(): Promise<boolean> {
    const seq = this.state.lastSeq;
    await this.#log.sync();
    const more = seq > this.#visibleSeq;
    // Numbers only go down when entries are numbered anew, which makes all of them wait for the next sync.
    this.#visibleSeq = Math.max(this.#visibleSeq, seq);
    return more;
  }

  /** Highest sequence number that is on disk: above it a power cut could give the same number to something else. */
  get visibleSeq(): number {
    return this.#visibleSeq;
  }

  get wantsCompaction(): boolean {
    return this.#log.size > Math.max(compactionFloor, 2 * this.#base);
  }

  /** It takes nothing more until it is rewritten. */
  get isBroken(): boolean {
    return this.#log.isBroken;
  }

  /**
   * Rewrites the journal as short as it can be. What was recorded until then is on disk afterwards.
   * @throws JournalFailure
   */
  async rewrite(): Promise<void> {
    await this.#log.replace(checkpoint(this.state));
    this.#base = this.#log.size;
  }

  /** Rewrites it, and removes copies that nothing refers to. */
  async compact(): Promise<void> {
    await this.rewrite();
    this.dropUnusedCopies();
  }

  /**
   * Removes copies that nothing refers to. What is recorded must be synced, and nothing be carried out: a copy is made
   * before the record that refers to it.
   */
  dropUnusedCopies(): void {
    const hashes = new Set<string>();
    for (const { before } of this.state.managed.values()) collectHashes(before, hashes);
    for (const operation of this.state.operations.values()) {
      for (const { before } of operation.intents.values()) collectHashes(before, hashes);
      for (const before of operation.befores.values()) collectHashes(before, hashes);
      collectHashes(operation.step?.before ?? null, hashes);
    }
    this.copies.retain(hashes);
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

function collectHashes(value: Json | null, into: Set<string>): void {
  if (value === null || typeof value !== 'object') return;
  if (Array.isArray(value)) {
    for (const item of value) collectHashes(item, into);
    return;
  }
  for (const [field, item] of Object.entries(value)) {
    if (field === 'sha256' && typeof item === 'string') into.add(item);
    else collectHashes(item, into);
  }
}

/** @throws HostFailure when it is there but others could get in */
function privateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const stats = lstatSync(path);
  if (!stats.isDirectory()) throw new HostFailure(`${path} is not a directory`);
  if (stats.uid !== (process.geteuid?.() ?? stats.uid))
    throw new HostFailure(`${path} belongs to another user (${stats.uid}); change its owner`);
  if ((stats.mode & 0o077) !== 0)
    throw new HostFailure(`${path} is open to other users; set its mode with: chmod 700 ${path}`);
  if ((stats.mode & 0o700) !== 0o700) makeDirectoryPrivate(path);
}
