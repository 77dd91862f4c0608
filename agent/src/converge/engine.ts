import type { Hello, OperationMessage, Report } from '@muster/protocol/wire';
import type { OutputTail } from './report/live-output.ts';
import type { ContentRequests } from './wanted-contents.ts';

/**
 * The interface of the state engine. The engine accepts operations, executes them one at a time, and puts its reports
 * into the spool. The engine is independent of links. `start`, `accept`, `observe`, `halt`, and `stop` wait for disk
 * access or programs; all other methods return immediately.
 */
export interface Engine {
  /**
   * Opens the journal and resumes unfinished operations. Call this once, before any other method. Resolves when the
   * journal has been read; unfinished operations continue in the background.
   * @throws Error if the data directory is unusable or its mode is too permissive
   */
  start(): Promise<void>;
  /**
   * Accepts an operation. Resolves once the journal on disk contains it.
   * @returns `known` if an operation with this ID was already accepted: it does not run again, and its reports are in
   *   the spool; `full` if too many operations are open: nothing was accepted, and the caller may retry later
   */
  accept(operation: OperationMessage): Promise<AcceptOutcome>;
  /** Cancels an operation after its current resource, or immediately if it has not begun. Ignores unknown IDs. */
  cancel(operationId: string): void;
  /** Returns all operations whose outcome the orchestrator has not acknowledged, for the hello. */
  openOperations(): OpenOperation[];
  readonly spool: ReportSpool;
  readonly output: OutputTail;
  /** Content that operations are waiting for. */
  readonly contents: ContentRequests;
  /**
   * Closes operations whose outcome the orchestrator has stored. An operation that has not begun is dropped; a running
   * one stops after its current resource.
   */
  settle(operationIds: readonly string[]): void;
  /** Reports whether an operation is running or waiting. */
  busy(): boolean;
  /**
   * Returns the paths where a change may mean drift, by key of the applied resource, and the number of applies so far.
   */
  applied(): { applies: number; watched: ReadonlyMap<string, readonly string[]> };
  /**
   * Observes resources as a drift check does, but reports nothing.
   * @returns a fingerprint of each state by key, as in `onMeasured`; null if an operation was running or has started
   * since
   */
  observe(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, string> | null>;
  /**
   * Finishes the current resource, up to a time limit, and starts no other. The spool still accepts acknowledgments.
   */
  halt(): Promise<void>;
  /** Halts and closes the journal. Call no method afterward. Unfinished operations resume at the next start. */
  stop(): Promise<void>;
}

export type AcceptOutcome = 'accepted' | 'known' | 'full';
export type OpenOperation = Hello['open_operations'][number];

/** Reports for the orchestrator. An entry becomes visible here once it has been synced to disk. */
export interface ReportSpool {
  /** Iterates over the entries after `afterSeq`, oldest first. The caller may stop at any entry. */
  pending(afterSeq: number): Iterable<SpoolEntry>;
  /** Deletes all entries up to and including `seq`, which the orchestrator has committed. */
  acknowledge(seq: number): void;
  /** Returns the highest sequence number so far; 0 if there is no entry yet. */
  lastSeq(): number;
}

export interface SpoolEntry {
  seq: number;
  reports: Report[];
  /** Length of the JSON text of `reports`, in bytes. */
  bytes: number;
}
