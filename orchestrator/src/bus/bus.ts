import type { OperationKind, OperationStatus } from '@muster/protocol';

/** A queued apply or plan that is not bound to a plan. */
export interface QueuedOperation {
  readonly operation_id: string;
  readonly node_id: string;
  readonly kind: Exclude<OperationKind, 'drift'>;
  readonly modules: readonly string[];
  readonly requested_by: string;
  readonly run_id: string | null;
  readonly trigger: 'audit' | null;
  readonly payload_digest: string;
  /** The agent's displayed name. */
  readonly label: string;
}

/**
 * Hints that something in the database has changed. Only the rows are reliable: a hint may be lost, repeated, or late,
 * so every subscriber also polls the rows.
 */
export type Hint =
  /** An operation was queued for this agent. The publisher may attach it to save a read. */
  | { type: 'work'; node_id: string; operation?: QueuedOperation }
  /** Approval status, name or tags of this agent have changed. */
  | { type: 'agent_changed'; node_id: string }
  /** The agent's link is open, and the agent counts as connected. */
  | { type: 'agent_linked'; node_id: string }
  /** The agent reported different attributes than when it connected. */
  | { type: 'agent_attributes'; node_id: string }
  /** The agent's link has ended; its last contact (Unix seconds) is recorded. */
  | { type: 'agent_departed'; node_id: string; heard_at: number }
  /** The agent's record was removed. */
  | { type: 'agent_removed'; node_id: string }
  | { type: 'cancel'; node_id: string; operation_id: string }
  | {
      type: 'operation_ended';
      operation_id: string;
      node_id: string;
      run_id: string | null;
      status: OperationStatus;
    }
  /** An operation has started, or has more results. */
  | { type: 'operation_running'; operation_id: string; node_id: string; run_id: string | null }
  /** A script of an operation has printed output; at most once per second and agent. */
  | { type: 'output'; node_id: string; operation_id: string; resource: string }
  | { type: 'run_ended'; run_id: string }
  /** A run was halted or cancelled. */
  | { type: 'run_changed'; run_id: string }
  /** A maintenance window was created, changed or removed; no hint is sent when one opens or closes. */
  | { type: 'windows_changed' }
  /** A message may be due for a channel. */
  | { type: 'deliveries_due' }
  /** An operator has read some or all notifications. */
  | { type: 'notifications_read'; operator_id: string }
  | { type: 'operator_removed'; operator_id: string }
  /** A sign-in session ended before its expiry. `renewed_as` is the token hash of the session that renewed it. */
  | { type: 'session_ended'; token_hash: string; renewed_as: string | null }
  /** Audit events were written that are not in the chain yet. */
  | { type: 'audited' }
  /** The chain now extends to this position. */
  | { type: 'placed'; place: number };

export interface Bus {
  /** Notifies all subscribers in a later turn. Never throws. */
  publish(hint: Hint): void;
  /** Resolves after all listeners have run for all published hints; immediately without pending hints. */
  delivered(): Promise<void>;
  /** @returns a function that ends the subscription */
  subscribe(listener: (hint: Hint) => void): () => void;
  close(): Promise<void>;
}
