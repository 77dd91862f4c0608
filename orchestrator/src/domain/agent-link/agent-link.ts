import type { Sample } from '@muster/protocol';
import type { Hello, OperationMessage, OutputProgress, Report, Welcome } from '@muster/protocol/wire';
import type { KeyOf } from './agent-keys.ts';
import type { Refusal } from './refusal.ts';

/**
 * What the gateway asks of the domain about one agent's link. The gateway has checked the signature, the schema and the
 * caps by then; an agent speaks only of itself, so every call carries the node id that its key proved.
 */
export interface AgentLinks {
  /** Whose key it is that the hello proved; nothing is changed. */
  keyOf(hello: Hello): Promise<KeyOf | { refusal: Refusal; node_id: string }>;
  /**
   * Records the agent (new ones as pending, or as their enrolment token says) with its attributes, and settles which
   * operations are still open; a key that takes the place of another does so first. Resolves after the commit.
   */
  admit(hello: Hello, from: Caller): Promise<Admission>;
  /** Its link is open: from now on it counts as connected. */
  opened(nodeId: string): void;
  /** Commits changed attributes. */
  attributesChanged(nodeId: string, attributes: Record<string, string>): Promise<void>;
  /**
   * Commits what the agent reports. Reports at or below the acknowledged sequence number, and those about another
   * agent's operations, change nothing. One call may carry the reports of several sequence numbers; `seq` is then the
   * highest, and none below it is still to come.
   * @returns null, or why this agent must be disconnected (a foreign operation)
   */
  reported(nodeId: string, instanceId: string, seq: number, reports: readonly Report[]): Promise<Refusal | null>;
  /**
   * The operation to send next, and whether another waits behind it; null when there is none, one is running, or the
   * agent is not approved.
   */
  nextOperation(nodeId: string, version?: number): Promise<{ operation: OperationMessage; more: boolean } | null>;
  /** Operations of this agent whose cancelling was asked for and that have not ended. */
  cancellations(nodeId: string): Promise<string[]>;
  /**
   * Node ids of every agent for which `nextOperation` or `cancellations` may have something now: one query, however
   * many agents there are. The gateway asks now and then, for hints that were lost.
   */
  agentsWithWork(): Promise<string[]>;
  /** Status, name and tags as committed now; null when the record is gone. */
  standing(nodeId: string): Promise<Standing | null>;
  /** Keeps what the agent measured; rejects when nothing of it was kept. */
  sampled(nodeId: string, samples: readonly Sample[]): Promise<void>;
  /** What a program on the agent has printed so far, for those who watch. Nothing of it is committed. */
  printed(nodeId: string, progress: OutputProgress): Promise<void>;
  /** The agent's watched resources moved: worth a drift check. */
  driftHinted(nodeId: string, keys: readonly string[]): Promise<void>;
  /** The link ended; `heardAt` is when its agent was last heard, in Unix seconds. */
  closed(nodeId: string, reason: string, heardAt: number): Promise<void>;
  /** A second process came with this agent's key while the first was alive. */
  cloneSeen(nodeId: string, remoteIp: string): Promise<void>;
  /** A hello or message was refused; for the audit log, bounded in rate by the gateway. */
  refused(refusal: Refusal, from: { node_id: string | null; remote_ip: string }): Promise<void>;
}

/** Who says hello, from where, at what time (Unix seconds). */
export interface Caller extends KeyOf {
  remote_ip: string;
  now: number;
}

export type Standing = Pick<Welcome, 'status' | 'name' | 'tags'>;

export type Admission =
  | { admitted: true; standing: Standing; acknowledged: number; settled_operations: string[] }
  | { admitted: false; refusal: Refusal };
