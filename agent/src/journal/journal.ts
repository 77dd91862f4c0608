import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import type { Clock } from '../../../lib/src/clock.ts';
import { HostFailure } from '../host/failure.ts';
import { makeDirectoryPrivate } from '../host/files/ownership.ts';
import type { Json, PrivateFiles } from '../resources/provider/provider.ts';
import { checkpoint, replayInto } from './checkpoint.ts';
import { ContentCache } from './content-cache.ts';
import { type ContentStore, openContentStore } from './content-store.ts';
import { JournalLog } from './log.ts';
import { openPrivateFiles } from './private-files.ts';
import { reduce } from './reduce.ts';
import { emptyState, type JournalEvent, type JournalState } from './state.ts';

/** Minimum size of the log, in bytes, before it is compacted. */
const minCompactionBytes = 4 * 1024 * 1024;

/** The durable state of the agent: a log of events, and the state that results from them. */
export class Journal {
  /** Real path of the directory with the agent's state. */
  readonly directory: string;
  readonly state: JournalState;
  readonly copies: ContentStore;
  readonly contents: ContentCache;
  readonly privateFiles: PrivateFiles;
  readonly #log: JournalLog;
  readonly #crashPoint: (name: string) => void;
  /** Size of the log after its last rewrite, in bytes. */
  #base: number;
  #visibleSeq: number;

  private constructor(
    directory: string,
    state: JournalState,
    log: JournalLog,
    copies: ContentStore,
    contents: ContentCache,
    privateFiles: PrivateFiles,
    crashPoint: (name: string) => void,
  ) {
    this.directory = directory;
    this.contents = contents;
    this.privateFiles = privateFiles;
    this.state = state;
    this.#log = log;
    this.copies = copies;
    this.#crashPoint = crashPoint;
    this.#base = log.size;
    this.#visibleSeq = state.lastSeq;
  }

  /**
   * Opens the journal of a data directory.
   * @param crashPoint called immediately before and after each durable step
   * @param damaged called with a description of any damage that does not make the journal unusable
   * @throws HostFailure if other users can access a directory, or the journal cannot be read
   */
  static async open(
    dataDir: string,
    clock: Pick<Clock, 'now'>,
    crashPoint: (name: string) => void,
    damaged: (detail: string) => void,
  ): Promise<Journal> {
    privateDirectory(dataDir);
    privateDirectory(`${dataDir}/state`);
    privateDirectory(`${dataDir}/state/before`);
    privateDirectory(`${dataDir}/state/contents`);
    const state = emptyState();
    const log = JournalLog.open(`${dataDir}/state`, replayInto(state), damaged);
    const copies = openContentStore(`${dataDir}/state/before`);
    const contents = new ContentCache(`${dataDir}/state/contents`, clock);
    const privateFiles = openPrivateFiles(`${dataDir}/state/private`);
    const journal = new Journal(
      realpathSync(`${dataDir}/state`),
      state,
      log,
      copies,
      contents,
      privateFiles,
      crashPoint,
    );
    if (log.size === 0) await journal.compact();
    else if (log.size > minCompactionBytes) {
      // Ignores a failure: the journal is usable, and the agent must start even if the disk is full.
      await journal.compact().catch((error: Error) => damaged(error.message));
    }
    return journal;
  }

  /**
   * Records events in a single line, so that after a crash, all of them or none are recorded.
   * @param name name of the step, for crash points
   */
  record(name: string, events: JournalEvent[]): void {
    if (events.length === 0) return;
    this.#crashPoint(`${name}:before`);
    this.#log.append(events);
    for (const event of events) reduce(this.state, event);
    this.#crashPoint(`${name}:after`);
  }

  /** Makes all records durable. @returns whether more reports became visible */
  async sync(): Promise<boolean> {
    const seq = this.state.lastSeq;
    await this.#log.sync();
    const more = seq > this.#visibleSeq;
    // Sequence numbers decrease only when entries are renumbered. In that case, all entries wait for the next sync.
    this.#visibleSeq = Math.max(this.#visibleSeq, seq);
    return more;
  }

  /** Highest sequence number on disk. After a power failure, a different entry could get a higher number. */
  get visibleSeq(): number {
    return this.#visibleSeq;
  }

  get needsCompaction(): boolean {
    return this.#log.size > Math.max(minCompactionBytes, 2 * this.#base);
  }

  /** Whether the journal rejects records until it is rewritten. */
  get isBroken(): boolean {
    return this.#log.isBroken;
  }

  /**
   * Rewrites the journal in its shortest form. Afterward, all records are on disk.
   * @throws JournalFailure
   */
  async rewrite(): Promise<void> {
    await this.#log.replace(checkpoint(this.state));
    this.#base = this.#log.size;
  }

  /** Rewrites the journal, and removes unreferenced copies. */
  async compact(): Promise<void> {
    await this.rewrite();
    this.dropUnusedCopies();
  }

  /**
   * Removes unreferenced copies. Requires that all records are synced and no operation is running, because a copy is
   * created before the record that refers to it.
   */
  dropUnusedCopies(): void {
    const hashes = new Set<string>();
    for (const { before } of this.state.managed.values()) collectHashes(before, hashes);
    for (const operation of this.state.operations.values()) {
      for (const { before, former = null } of operation.intents.values())
        for (const record of [before, former]) collectHashes(record, hashes);
      for (const before of operation.befores.values()) collectHashes(before, hashes);
      collectHashes(operation.step?.before ?? null, hashes);
    }
    this.copies.retain(hashes);
  }

  /**
   * Removes content that is not the source of a managed resource or an open operation.
   * @param downloads hashes of other content to retain
   */
  dropUnusedContents(downloads: ReadonlySet<string>): void {
    const { managed, operations } = this.state;
    const open = [...operations.values()]
      .filter(({ state }) => state !== 'finished')
      .flatMap(({ message }) => message.resources);
    const sources = [...[...managed.values()].map(({ resource }) => resource), ...open].map(
      ({ source }) => source?.sha256,
    );
    const declared = open.map(({ body }) => ('sha256' in body ? body.sha256 : null));
    const needed = [...sources, ...declared, ...downloads].filter((sha256) => typeof sha256 === 'string');
    this.contents.retain(new Set(needed));
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

/**
 * Creates a directory that only this user can access.
 * @throws HostFailure if other users can access an existing directory
 */
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
