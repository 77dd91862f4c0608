import type { Log } from '../../../../lib/src/log.ts';
import type { Bus } from '../../bus/bus.ts';
import type { SecretKeys } from '../../identity/secret-keys.ts';
import type { Database } from '../../store/database.ts';
import type { AgentRecords } from './agent-records.ts';
import type { ModuleDocuments } from './module-documents.ts';

/** The domain's dependencies. */
export interface Context {
  readonly db: Database;
  readonly bus: Bus;
  /** Identifies this process, for its whole lifetime, among all processes that ever use the database. */
  readonly incarnation: string;
  /** Whether this process shares the database with other processes. */
  readonly isReplica: boolean;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
  /**
   * Returns Unix milliseconds that are not affected when this machine's clock is set. For short time limits. All
   * processes on one database agree on them, except for small differences.
   */
  readonly steadyNow: () => number;
  /** Returns a ULID that is larger than all ULIDs that this process has returned. */
  readonly newId: () => string;
  /** Makes this process return only IDs that are larger than this ULID of another process. */
  readonly passId: (id: string) => void;
  /** Returns cryptographically secure random bytes. */
  readonly randomBytes: (length: number) => Buffer;
  readonly presence: Presence;
  readonly documents: ModuleDocuments;
  readonly agentRecords: AgentRecords;
  /** Encryption keys for secrets. */
  readonly secretKeys: SecretKeys;
  readonly log: Log;
}

/** The connected agents, according to the gateway and, with replicas, to the rows of the other replicas. */
export interface Presence {
  isConnected(nodeId: string): boolean;
  /** Number of connected agents. */
  readonly count: number;
  /** Returns the Unix seconds of the last message or ping; null if not connected, and 0 if not known yet. */
  lastContactAt(nodeId: string): number | null;
  /** Returns how many seconds a connected agent's clock is ahead; 0 if unknown. */
  clockAheadSecs(nodeId: string): number;
  /** Returns the other replica that the agent is connected to; null if there is none. */
  replicaOf(nodeId: string): OtherReplica | null;
}

/** Another live replica. */
export interface OtherReplica {
  readonly incarnation: string;
  readonly name: string;
}

export interface Actor {
  readonly type: 'operator' | 'agent' | 'system';
  readonly id: string;
  readonly name: string;
  /** SHA-256 (hex) of the request's token. The actor's changes fail once this sign-in session has ended. */
  readonly session?: string;
}

export const systemActor: Actor = { type: 'system', id: '', name: '' };

export const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
