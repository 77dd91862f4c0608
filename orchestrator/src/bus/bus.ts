import type { OperationKind, OperationStatus } from '@muster/protocol';
import type { Asks } from './asks.ts';

/** A queued operation that is not bound to a plan. */
export interface QueuedOperation {
  readonly operation_id: string;
  readonly node_id: string;
  readonly kind: Exclude<OperationKind, 'drift'>;
  readonly modules: readonly string[];
  readonly requested_by: string;
  readonly run_id: string | null;
  readonly trigger: 'audit' | null;
  readonly payload_digest: string;
  /** For an apply, the revision of each of its modules, as JSON; null for a plan. */
  readonly revisions: string | null;
  /** Display name of the agent. */
  readonly label: string;
}

/**
 * Hints that the database has changed. A hint may be lost, repeated, or late, so every subscriber also polls the
 * database.
 */
export type Hint =
  /** An operation was queued for this agent. The publisher may attach the operation, to save subscribers a read. */
  | { type: 'work'; node_id: string; operation?: QueuedOperation }
  /** The approval status, name, or tags of this agent have changed. */
  | { type: 'agent_changed'; node_id: string }
  | { type: 'agent_linked'; node_id: string }
  /** The agent has reported attributes that differ from those it sent when it connected. */
  | { type: 'agent_attributes'; node_id: string }
  /** The agent has disconnected. Its last contact (Unix seconds) is recorded. */
  | { type: 'agent_departed'; node_id: string; heard_at: number }
  | { type: 'agent_removed'; node_id: string }
  | { type: 'cancel'; node_id: string; operation_id: string }
  | {
      type: 'operation_ended';
      operation_id: string;
      node_id: string;
      run_id: string | null;
      status: OperationStatus;
    }
  /** An operation has started or has new results. */
  | { type: 'operation_running'; operation_id: string; node_id: string; run_id: string | null }
  /** A script in an operation has printed output. At most one hint per agent per second. */
  | { type: 'output'; node_id: string; operation_id: string; resource: string }
  | { type: 'run_ended'; run_id: string }
  /** A run was halted or canceled. */
  | { type: 'run_changed'; run_id: string }
  /** A maintenance window was created, changed, or removed. No hint is sent when it opens or closes. */
  | { type: 'windows_changed' }
  /** A notification may be due for delivery. */
  | { type: 'deliveries_due' }
  /** An operator has read some or all notifications. */
  | { type: 'notifications_read'; operator_id: string }
  | { type: 'operator_removed'; operator_id: string }
  /** A sign-in session ended before it expired. `renewed_as` is the token hash of the session that replaces it. */
  | { type: 'session_ended'; token_hash: string; renewed_as: string | null }
  /** Audit events were recorded, but not yet chained. */
  | { type: 'audited' }
  /** The audit chain has been extended to this position. */
  | { type: 'placed'; place: number }
  /** Other processes have changed agent links or records. Subscribers read the changed rows to learn which agents are affected. */
  | { type: 'links_changed' }
  /** Hints from other processes were lost, so everything may have changed. */
  | { type: 'hints_lost' };

/** The process that published a hint: this process, or another process on the same database. */
export type HintSource = 'own' | 'other';

export type HintListener = (hint: Hint, source: HintSource) => void;

/** Carries hints to all subscribers, and questions to single processes. */
export interface Bus extends Asks {
  /** Notifies all subscribers, including those in other processes, in a later event-loop turn. Never throws. */
  publish(hint: Hint): void;
  /**
   * Notifies only the subscribers in this process. Use it for changes that each process finds in the database itself,
   * so that no subscriber is notified twice.
   */
  publishHere(hint: Hint): void;
  /** Resolves after all listeners in this process have run for all published hints. */
  delivered(): Promise<void>;
  /** @returns a function that unsubscribes the listener */
  subscribe(listener: HintListener): () => void;
  close(): Promise<void>;
}
