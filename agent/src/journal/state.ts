import type { ResourceResult } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage, Report } from '@muster/protocol/wire';
import type { ProcessIdentity } from '../../../lib/src/process-identity.ts';
import type { Json } from '../resources/provider/provider.ts';

/** The journal's state in memory, and the events that change it. `reduce` applies the events. */

export type FinishedReport = Extract<Report, { type: 'finished' }>;

export interface OperationRecord {
  message: OperationMessage;
  state: 'accepted' | 'running' | 'finished';
  /** Whether the acceptance was reported, or its report is in the spool. */
  acceptedReported: boolean;
  cancelled: boolean;
  /** Unix seconds; null until the operation began. */
  startedAt: number | null;
  /** Keys of resources to remove, in order. Fixed when the operation begins. */
  removals: string[];
  /** Observed states of resources that are about to change, by position. */
  intents: Map<number, Intent>;
  /** The step in progress, if its resource is not recheckable. */
  step: { position: number; process: ProcessIdentity | null; before: Json | null } | null;
  /** Original states of resources that have no result yet, by key. */
  befores: Map<string, Json>;
  /** For an apply: results by position, without changes, diffs, and messages. */
  results: ResourceResult[];
  /** For an apply: the highest ordinal among its resources so far; absent before the first resource. */
  lastOrdinal?: number;
  /** Parent directories that the operation created. */
  freshDirectories: Set<string>;
  finished: FinishedReport | null;
}

/** Returns the record of an operation that was accepted and has not begun. */
export const newOperation = (message: OperationMessage): OperationRecord => ({
  message,
  state: 'accepted',
  acceptedReported: false,
  cancelled: false,
  startedAt: null,
  removals: [],
  intents: new Map(),
  step: null,
  befores: new Map(),
  results: [],
  freshDirectories: new Set(),
  finished: null,
});

export interface Intent {
  seen: Json;
  before: Json | null;
  /** Whether another resource triggered the step immediately, before its turn. */
  isEarly?: boolean;
  /**
   * The provider's record of the state before this operation, if the resource is restored when a service fails after
   * the change.
   */
  former?: Json;
}

export interface ManagedRecord {
  /** The resource as last declared, whether or not it succeeded. */
  resource: ResolvedResource;
  /** The resource as last applied successfully; null if it never was. */
  succeeded: ResolvedResource | null;
  /**
   * The provider's record of the original state; null if the resource was already as declared before it was managed.
   */
  before: Json | null;
  /** Increases in the order of application. Removals run from the highest to the lowest. */
  ordinal: number;
}

export interface SpooledReports {
  seq: number;
  reports: Report[];
  bytes: number;
}

export interface JournalState {
  operations: Map<string, OperationRecord>;
  /** Final reports that the orchestrator has acknowledged, oldest first. Resent if an operation is delivered twice. */
  past: Map<string, FinishedReport>;
  managed: Map<string, ManagedRecord>;
  /** Parent directories that the agent created for declared resources. */
  ourDirectories: Set<string>;
  /** Triggers that remain due after their operation, by key of the triggered resource: IDs of the changed resources. */
  pendingTriggers: Map<string, string[]>;
  /** The desired state of the last successful apply. */
  snapshot: { operationId: string; resources: ResolvedResource[] } | null;
  spool: Map<number, SpooledReports>;
  spoolBytes: number;
  lastSeq: number;
  applies: number;
}

export type JournalEvent =
  | { t: 'accepted'; message: OperationMessage }
  | { t: 'cancelled'; id: string }
  | { t: 'began'; id: string; at: number; removals: string[] }
  | { t: 'intents'; id: string; entries: ({ position: number } & Intent)[] }
  | { t: 'step'; id: string; position: number; process: ProcessIdentity | null; before: Json | null }
  | { t: 'before'; id: string; key: string; before: Json }
  | { t: 'directories'; id: string | null; made: string[]; gone: string[] }
  | { t: 'report'; seq: number; reports: Report[] }
  | { t: 'ended'; id: string; finished: FinishedReport; pending: [string, string[]][]; snapshot: boolean }
  | { t: 'acknowledged'; seq: number }
  | { t: 'settled'; ids: string[] }
  | { t: 'dropped'; seqs: number[] }
  | { t: 'renumbered'; above: number };

export const emptyState = (): JournalState => ({
  operations: new Map(),
  past: new Map(),
  managed: new Map(),
  ourDirectories: new Set(),
  pendingTriggers: new Map(),
  snapshot: null,
  spool: new Map(),
  spoolBytes: 0,
  lastSeq: 0,
  applies: 0,
});

/** Reports whether a resource declares a directory. Such a directory does not count as a created parent directory. */
export const isDirectory = ({ type, body }: ResolvedResource): boolean =>
  type === 'directory-unix' && !('ensure' in body && body.ensure === 'absent');
