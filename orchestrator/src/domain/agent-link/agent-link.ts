import type { Sample } from '@muster/protocol';
import type { Hello, OperationMessage, OutputProgress, Report, Welcome } from '@muster/protocol/wire';
import type { KeyOf } from './agent-keys.ts';
import type { Refusal } from './refusal.ts';

/**
 * The domain's interface for agent links, called by the gateway. The gateway has already checked signatures, schemas,
 * and size limits. Each call carries the node id that belongs to the agent's key, so an agent can act only for itself.
 */
export interface AgentLinks {
  /** Finds the agent that owns the key in the hello, without changing anything. */
  keyOf(hello: Hello): Promise<KeyOf | { refusal: Refusal; node_id: string }>;
  /**
   * Records the agent with its attributes, and determines which operations are open. A new agent is recorded as
   * pending, or as its enrollment token specifies. A key succession is committed first. Resolves once it is committed.
   */
  admit(hello: Hello, from: Caller): Promise<Admission>;
  /** Announces that the agent's link is open. */
  opened(nodeId: string): void;
  attributesChanged(nodeId: string, attributes: Record<string, string>): Promise<void>;
  /**
   * Commits the agent's reports. Reports at or below the acknowledged sequence number change nothing. One call may
   * contain reports with several sequence numbers. `seq` is the highest one; all lower ones are included or already
   * committed.
   * @returns null, or the reason to disconnect the agent, such as a report about another agent's operation
   */
  reported(nodeId: string, instanceId: string, seq: number, reports: readonly Report[]): Promise<Refusal | null>;
  /**
   * Returns the next operation to send, and whether another operation is queued after it. Returns null if no operation
   * is queued, an operation is running, or the agent is not approved.
   */
  nextOperation(nodeId: string, version?: number): Promise<{ operation: OperationMessage; more: boolean } | null>;
  /**
   * Returns the contents that an open operation of the agent references: the size of each by its SHA-256.
   * @returns null if the agent has no such operation, or the operation has ended
   */
  contentsOf(nodeId: string, operationId: string): Promise<ReadonlyMap<string, number> | null>;
  /**
   * Returns the bytes of a file from an offset, at most up to the end of the stored chunk that contains it; null if the
   * file is not stored.
   */
  readContent(sha256: string, from: number): Promise<Uint8Array | null>;
  /** Returns the ids of the agent's open operations whose cancellation was requested. */
  cancellations(nodeId: string): Promise<string[]>;
  /**
   * Returns the node ids of all agents for which `nextOperation` or `cancellations` may return a result, using a
   * single query. The gateway calls this periodically to recover lost hints.
   */
  agentsWithWork(): Promise<string[]>;
  /** Returns the committed status, name, and tags; null if the agent has no record. */
  standing(nodeId: string): Promise<Standing | null>;
  /** Stores samples. Rejects, without storing any, if the write fails. */
  sampled(nodeId: string, samples: readonly Sample[]): Promise<void>;
  /** Forwards a running program's output to live viewers. Stores nothing. */
  printed(nodeId: string, progress: OutputProgress): Promise<void>;
  /** Handles a change to watched resources. May start a drift check. */
  driftHinted(nodeId: string, keys: readonly string[]): Promise<void>;
  /** Records that the link closed. `lastContactAt` is when the agent was last heard from, in Unix seconds. */
  closed(nodeId: string, reason: string, lastContactAt: number): Promise<void>;
  /** Records that a second process connected with this agent's key while the first link was alive. */
  cloneSeen(nodeId: string, remoteIp: string): Promise<void>;
  /** Records a refused hello or message in the audit log. The gateway limits the rate of calls. */
  refused(refusal: Refusal, from: { node_id: string | null; remote_ip: string }): Promise<void>;
}

/** The sender of a hello: its key, its address, and the arrival time (Unix seconds). */
export interface Caller extends KeyOf {
  remote_ip: string;
  now: number;
}

export type Standing = Pick<Welcome, 'status' | 'name' | 'tags'>;

export type Admission =
  | { admitted: true; standing: Standing; acknowledged: number; settled_operations: string[] }
  | { admitted: false; refusal: Refusal };
