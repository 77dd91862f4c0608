import type { OperationKind, OperationStatus } from '@muster/protocol';

/** An apply or plan as it was queued, bound to no plan. */
export interface QueuedOperation {
  readonly operation_id: string;
  readonly node_id: string;
  readonly kind: Exclude<OperationKind, 'drift'>;
  readonly modules: readonly string[];
  readonly requested_by: string;
  readonly run_id: string | null;
  readonly trigger: 'audit' | null;
  readonly payload_digest: string;
  /** How people know the agent. */
  readonly label: string;
}

/**
 * Hints that something in the database is worth a look. Rows are the truth: a hint may be lost, repeated or late, and
 * whoever depends on one also looks at the rows now and then.
 */
export type Hint =
  /** An operation is queued for this agent; who queued it may say what it is, so that it need not be read. */
  | { type: 'work'; node_id: string; operation?: QueuedOperation }
  /** Approval state, name or tags of this agent have changed. */
  | { type: 'agent_changed'; node_id: string }
  /** The agent's link is open, and it counts as connected. */
  | { type: 'agent_linked'; node_id: string }
  /** The agent said that it is something else now than when it connected. */
  | { type: 'agent_attributes'; node_id: string }
  /** The agent's link has ended, and when it was last heard (Unix seconds) is on record. */
  | { type: 'agent_departed'; node_id: string; heard_at: number }
  /** The agent's record is gone. */
  | { type: 'agent_removed'; node_id: string }
  | { type: 'cancel'; node_id: string; operation_id: string }
  | {
      type: 'operation_ended';
      operation_id: string;
      node_id: string;
      run_id: string | null;
      status: OperationStatus;
    }
  /** An operation runs; again when further results of it are there. */
  | { type: 'operation_running'; operation_id: string; node_id: string; run_id: string | null }
  /** A program that an operation runs has printed something; at most once a second for an agent. */
  | { type: 'output'; node_id: string; operation_id: string; resource: string }
  | { type: 'run_ended'; run_id: string }
  /** A run was halted or cancelled: its rows say what became of it. */
  | { type: 'run_changed'; run_id: string }
  /** A maintenance window was planned, moved or removed; windows also open and close by themselves. */
  | { type: 'windows_changed' }
  /** Something may be sent to a channel. */
  | { type: 'deliveries_due' }
  /** This operator has read some, or all. */
  | { type: 'notifications_read'; operator_id: string }
  | { type: 'operator_removed'; operator_id: string }
  /** A session was ended before its time; `renewed_as`: by its operator, to have another in its place. */
  | { type: 'session_ended'; token_hash: string; renewed_as: string | null }
  /** Events were written that have no place in the chain yet. */
  | { type: 'audited' }
  /** The chain has grown up to this place. */
  | { type: 'placed'; place: number };

export interface Bus {
  /** Tells every subscriber, soon. Never throws. */
  publish(hint: Hint): void;
  /** Resolves once every listener has run for every hint published so far; at once when there is none. */
  delivered(): Promise<void>;
  /** @returns ends the subscription */
  subscribe(listener: (hint: Hint) => void): () => void;
  close(): Promise<void>;
}
