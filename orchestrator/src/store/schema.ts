import type { OperationKind, OperationStatus, ResourceResult, Summary } from '@muster/protocol';
import type { AuditEvent, ChannelType, DriftAcceptance } from '@muster/protocol/http';
import type { ColumnType, Generated } from 'kysely';
import type { JsonText } from './json-text.ts';

/**
 * The tables after the newest migration. IDs are text. Times are Unix seconds unless the name states another unit.
 * Lists and objects are stored as JSON text. Rows are the same in both databases.
 */

/** A boolean, stored as 1 or 0. Statements may write either form. */
export type Flag = ColumnType<0 | 1, 0 | 1 | boolean, 0 | 1 | boolean>;

type StringMap = Record<string, string>;

export interface OperatorsTable {
  operator_id: string;
  public_key: string;
  username: string;
  role: 'admin' | 'operator';
  added_at: number;
  /** `operator_id`, or `bootstrap` for the first operator. */
  added_by: string;
  bootstrap: Flag;
  removed_at: number | null;
  removed_by: string | null;
}

export interface SessionsTable {
  token_hash: string;
  operator_id: string;
  created_at: number;
  expires_at: number;
  /** Time at which the challenge was signed. Session renewals do not change it. */
  signed_in_at: number;
  /** 1 if the signed challenge named this server, otherwise 0. Session renewals do not change it. */
  bound: number;
  /** Public ID. Null if the session was created before schema version 22. Session renewals do not change it. */
  session_id: string | null;
  /** `console`: a browser session, which has a cookie. */
  kind: 'token' | 'console';
  /** Updated at most once every few minutes; null until the first update. */
  last_used_at: number | null;
  /** User agent and address at sign-in. Untrusted; at most 256 characters. */
  user_agent: string | null;
  address: string | null;
}

export interface AgentsTable {
  node_id: string;
  public_key: string;
  name: string | null;
  status: 'pending' | 'approved' | 'rejected';
  agent_version: string;
  attributes: JsonText<StringMap>;
  initial_hostname: string;
  initial_ip: string;
  connected_at: number;
  updated_at: number;
  last_seen_at: number;
  /** How the agent obtained the orchestrator key that it pins, as reported by the agent. */
  pin_source: string;
  enrolment_token_id: string | null;
  first_seen_at: number;
  lost_at: number | null;
  /** Address from which the agent last connected. */
  remote_ip: string | null;
  /** Time of the last `agent.cloned` event about the agent. */
  clone_seen_at: number | null;
  /** The process that admitted the agent's newest link. Only this process may write the agent's reports. */
  link_incarnation: string | null;
  /**
   * With PostgreSQL, the ID of the transaction that last changed the link, the status, the name, or the tags. Other
   * processes use it to find changes.
   */
  link_change: Generated<number>;
  /** The agent process that has the newest link. Set only by replicas. */
  link_instance: string | null;
  /**
   * Set by another replica to ask whether the agent still responds on its newest link. The replica that holds the link
   * replaces the probe with the answer.
   */
  link_probe: string | null;
}

export interface AgentTagsTable {
  node_id: string;
  key: string;
  value: string;
}

/** The keys of each agent: the current key, whose `valid_until` is null, and previous keys. */
export interface AgentKeysTable {
  public_key: string;
  node_id: string;
  valid_until: number | null;
}

export interface EnrolmentTokensTable {
  id: string;
  token_hash: string;
  name: string | null;
  tags: JsonText<StringMap>;
  approve: Flag;
  uses_left: number;
  created_at: number;
  created_by: string;
  expires_at: number;
  revoked_at: number | null;
}

export interface ModulesTable {
  name: string;
  /** Number of the newest revision in `module_revisions`. */
  revision: number;
  uploaded_at: number;
  uploaded_by: string;
  /** Names of the modules that the newest revision requires. */
  requires: JsonText<string[]>;
}

export interface ModuleRevisionsTable {
  name: string;
  revision: number;
  content: string;
  digest: string;
  uploaded_at: number;
  uploaded_by: string;
}

/** File contents, each stored once. */
export interface ContentsTable {
  /** SHA-256, in lowercase hexadecimal. */
  sha256: string;
  content_id: string;
  /** Size in bytes. */
  size: number;
}

/** Contents, split into pieces of equal size, except for the last piece. */
export interface ContentPiecesTable {
  /** ULID that contains the time at which the content was written. */
  content_id: string;
  /** Index of the piece, starting at 0. */
  position: number;
  bytes: Uint8Array;
}

/** Files that belong to modules, by revision. */
export interface ModuleFilesTable {
  name: string;
  revision: number;
  /** Path relative to the module's folder. */
  path: string;
  sha256: string;
  size: number;
  executable: Flag;
}

export interface AssignmentsTable {
  name: string;
  modules: JsonText<string[]>;
  selector: string;
  description: string | null;
  mode: 'enforce' | 'audit';
  window_only: Flag;
  parameters: JsonText<Record<string, Record<string, unknown>>>;
  created_at: number;
  created_by: string;
  /**
   * Order in which the values of several assignments for the same parameter are merged. With `merge: replace`, the value
   * with the highest precedence is used.
   */
  precedence: number;
}

export interface OperationsTable {
  operation_id: string;
  node_id: string;
  kind: OperationKind;
  status: OperationStatus;
  modules: JsonText<string[]>;
  requested_by: string;
  run_id: string | null;
  plan_id: string | null;
  created_at: number;
  dispatched_at: number | null;
  started_at: number | null;
  finished_at: number | null;
  expires_at: number | null;
  /** Time at which cancellation was requested after the operation was dispatched. */
  cancel_requested_at: number | null;
  /** For a drift check, what triggered it. */
  trigger: 'operator' | 'schedule' | 'watch' | 'audit' | null;
  summary: JsonText<Summary> | null;
  error: string | null;
  /** Digest of the resolved desired state; null for a drift check, which has none. */
  payload_digest: string | null;
  snapshot_operation_id: string | null;
  /** Modules specified in the request; null for operations that an earlier release queued. */
  requested_modules: JsonText<string[]> | null;
  /** For a plan that succeeded, the digest of its changes, which the agent calculated. */
  plan_digest: string | null;
  /** For a plan, the versions of the secrets that it uses. */
  secret_versions: JsonText<Record<string, number>> | null;
  /** For an apply, the revision of each of its modules; null for operations that an earlier release queued. */
  revisions: JsonText<Record<string, number>> | null;
}

/** Resolved desired states, each stored once for all agents that receive it. */
export interface OperationPayloadsTable {
  /** SHA-256 of the text, in hex. */
  digest: string;
  payload: JsonText<unknown>;
}

export interface OperationResourcesTable {
  operation_id: string;
  /** Position of the first result. */
  position: number;
  /** Consecutive results as JSON, one per line. Rows from earlier releases contain one result each. */
  result: string;
}

export interface OperationOutputsTable {
  operation_id: string;
  resource_key: string;
  stdout: string;
  stderr: string;
  exit_code: number | null;
  truncated: Flag;
}

/** Applied state of each machine: resources in place, pending removals, and resources that failed to apply. */
export interface AppliedResourcesTable {
  node_id: string;
  key: string;
  module: string;
  resource_id: string | null;
  type: string;
  identity: string;
  operation_id: string;
  since: number;
  state: 'applied' | 'pending_removal' | 'unapplied';
  reason: string | null;
  /** Whether an apply put the resource in place and no later apply removed it. */
  in_place: Flag;
}

/** Revision of each module in an agent's last successful apply. */
export interface AppliedModulesTable {
  node_id: string;
  module: string;
  revision: number;
}

export interface AgentStateTable {
  node_id: string;
  snapshot_operation_id: string | null;
  updated_at: number;
  /**
   * Time at which the next drift check is due; null until the first apply, and between a missed check and the agent's
   * next connection.
   */
  drift_due_at: number | null;
  /** The most recently finished apply, unless it succeeded or was canceled. */
  failed_apply_id: string | null;
}

export interface DriftRecordsTable {
  drift_id: string;
  node_id: string;
  operation_id: string | null;
  status: 'in_sync' | 'drifted' | 'failed' | 'cancelled';
  trigger: 'operator' | 'schedule' | 'watch' | 'audit';
  checked_at: number;
  snapshot_operation_id: string;
  summary: JsonText<Summary>;
  resources: JsonText<ResourceResult[]>;
  error: string | null;
  /** The acceptance of the drift, whether it was accepted before or after the check. */
  accepted: JsonText<DriftAcceptance> | null;
}

/** Each agent's newest record in `drift_records`. */
export interface LatestDriftTable {
  node_id: string;
  drift_id: string;
  status: DriftRecordsTable['status'];
}

/** Machines that have drifted, until they are in sync again. */
export interface DriftStatesTable {
  node_id: string;
  /** Empty for drift from the applied state; `audit:NAME` for drift from the audit assignment NAME. */
  scope: string;
  /** Each resource's drifted fields, by key; null in rows from an earlier release. */
  drifted: JsonText<Record<string, string[]>> | null;
  since: number;
  /** The newest record that found this drift; null in rows from an earlier release. */
  drift_id: string | null;
  /** Digest of each resource's observed state, by key. Used to detect whether a later check finds the same drift. */
  fingerprints: JsonText<Record<string, string>> | null;
  /** The acceptance of the drift; null if it is not accepted. */
  accepted: JsonText<DriftAcceptance> | null;
}

export interface RunsTable {
  run_id: string;
  assignment: string | null;
  kind: OperationKind;
  status: 'running' | 'succeeded' | 'failed' | 'halted' | 'cancelled';
  started_at: number;
  finished_at: number | null;
  requested_by: string;
  options: JsonText<Record<string, unknown>>;
  /** Number of agents with each outcome; null until the run has ended. */
  succeeded: number | null;
  failed: number | null;
  cancelled: number | null;
  skipped: number | null;
}

/** The terms of a run, fixed when it started. */
export interface RunBasesTable {
  run_id: string;
  basis: JsonText<unknown>;
}

export interface RunResultsTable {
  run_id: string;
  node_id: string;
  operation_id: string | null;
  /** `waiting` until the run reaches the agent, and then the status of the agent's operation. */
  status: 'waiting' | OperationStatus;
  error: string | null;
  /** The agent's position in the run; null for runs from an earlier release. */
  position: number | null;
}

export interface AuditEventsTable {
  /**
   * Sequence number, which increases with every event. On PostgreSQL, there may be gaps, and the order may differ from
   * the commit order.
   */
  seq: Generated<number>;
  id: string;
  event_type: string;
  /** The part of the event type before the dot. */
  category: string;
  severity: 'info' | 'warning' | 'critical';
  /** Time in Unix milliseconds. */
  timestamp_ms: number;
  actor_type: string;
  actor_id: string;
  actor_name: string;
  target_type: string;
  target_id: string;
  target_name: string;
  summary: string;
  metadata: JsonText<Record<string, unknown>>;
  /** Position in the chain; null until the event is chained. */
  place: number | null;
  /** SHA-256 of the previous hash and the event, in lowercase hex. */
  hash: string | null;
}

/** Positions in the audit chain, by name. */
export interface AuditChainTable {
  name: 'head' | 'anchor' | 'cut' | 'history';
  place: number;
  hash: string;
}

/** Leases for work that only one process may do at a time. */
export interface LeasesTable {
  name: string;
  /** The incarnation of the holder; empty if the lease has been released. */
  holder: string;
  /**
   * Fencing token. Increases each time the lease is taken, so that the database can refuse writes by a previous holder.
   */
  token: number;
}

/** The live processes that share the database (PostgreSQL only). */
export interface ReplicasTable {
  /** Identifies a process during its lifetime. */
  incarnation: string;
  name: string;
  /** The Muster release that the process runs. */
  version: string;
  started_at: number;
  /** Counter that the process increments every two seconds. */
  beat: number;
  /** Why the process should hold no leases: 1 if an operator drains it, 2 if it is stopping; 0 if it may hold some. */
  draining: Generated<0 | 1 | 2>;
  /** Whether the process was ready at its last heartbeat; null if its release does not report readiness. */
  ready: 0 | 1 | null;
  /** Equal for processes with the same configuration; null if the release of the process does not report a digest. */
  config_digest: string | null;
}

/** When each replica last heard from its agents. */
export interface ReplicaContactsTable {
  incarnation: string;
  /** Unix seconds. */
  at: number;
  contacts: Uint8Array;
}

/** Fingerprints of the keys that all replicas must have. */
export interface ReplicaKeysTable {
  kind: 'identity' | 'api' | 'secrets';
  fingerprint: string;
}

export interface SettingsTable {
  key: string;
  value: string;
}

/** A maintenance window is open from `starts_at` until just before `ends_at`. */
export interface MaintenanceWindowsTable {
  id: string;
  starts_at: number;
  ends_at: number;
  reason: string;
  /** Null selects every agent. */
  selector: string | null;
  created_at: number;
  created_by: string;
}

/** Codes that a signed-in operator passes to a browser, which exchanges them for new sign-in sessions. */
export interface WebLoginCodesTable {
  code_hash: string;
  operator_id: string;
  /** The sign-in session that created the code; when it ends, the code becomes invalid. */
  session_hash: string;
  /** Time at which the challenge was signed. The time limit for renewals of the new session starts at this time. */
  signed_in_at: number;
  expires_at: number;
}

/** Answered sign-in challenges, so that no challenge is accepted twice. Challenges without an answer have no row. */
export interface AnsweredChallengesTable {
  /** In lowercase hexadecimal. */
  nonce: string;
  operator_id: string;
  /** Time in Unix milliseconds. */
  issued_at_ms: number;
}

/** Unused tickets for terminal connections. A row is deleted when its ticket is used. */
export interface TerminalTicketsTable {
  /** SHA-256 of the ticket, in lowercase hexadecimal. */
  ticket_hash: string;
  /** The terminal session. */
  session_id: string;
  operator_id: string;
  username: string;
  mode: 'control' | 'view';
  /** The sign-in session that requested the ticket. Updated when the session is renewed. */
  token_hash: string | null;
  /** Time in Unix milliseconds. */
  expires_at_ms: number;
}

/**
 * The last committed message from each agent's spool. `instance_id` identifies the process that numbered the messages.
 */
export interface SpoolAckTable {
  node_id: string;
  instance_id: string;
  seq: number;
}

/**
 * The amount of data that each agent caused to be stored on a day. Rows are updated in increments, because a write for
 * each report would be expensive.
 */
export interface AgentUsageTable {
  node_id: string;
  /** Number of days since 1970-01-01 UTC. */
  day: number;
  bytes: number;
  /** Number of events caused by reports that do not belong to an operation. */
  events: number;
  /** Number of drift checks that the agent's hints triggered. */
  hints: number;
  /** Bit mask of the limits for which `agent.limited` was recorded on that day. */
  limited: Generated<number>;
}

export interface TerminalSessionsTable {
  session_id: string;
  node_id: string;
  operator_id: string;
  status: 'active' | 'closed' | 'interrupted';
  opened_at: number;
  closed_at: number | null;
  end_reason: string | null;
  /** SHA-256 of the transcript file at the end of the session. */
  transcript_sha256: string | null;
  transcript_bytes: number | null;
  /** The process that has the terminal; null for sessions that an earlier release opened. */
  home: string | null;
}

export interface ChannelsTable {
  channel_id: string;
  name: string;
  channel_type: ChannelType;
  /** The key with which `sealed` is encrypted. */
  key_id: string;
  /** The configuration, encrypted as a whole, because most channel addresses are secrets. */
  sealed: string;
  created_at: number;
  created_by: string;
  /** Number of failed attempts since the last successful delivery. */
  failures: number;
  /** Time of the next attempt, in Unix milliseconds. */
  retry_at_ms: number;
  /** Time at which the channel was reported as failing, in Unix seconds; null if it is not failing. */
  failing_since: number | null;
  /** Time of the last successful delivery, in Unix seconds; null if there was none. */
  delivered_at: number | null;
  /** Why the last attempt failed; null if it succeeded or there was no attempt. */
  last_error: string | null;
}

export interface NotificationsTable {
  notification_id: string;
  /** Position of the event in the audit chain. */
  place: number;
  event_id: string;
  event_type: string;
  severity: 'info' | 'warning' | 'critical';
  summary: string;
  timestamp_ms: number;
  node_id: string | null;
  suppressed: number;
  event: JsonText<AuditEvent>;
}

/** The outbox. A row is deleted when its message has been delivered or dropped. */
export interface DeliveriesTable {
  channel_id: string;
  /** Position of the notification. */
  place: number;
  delivery_id: string;
  attempts: number;
  created_at_ms: number;
}

/**
 * Read marks of individual notifications. Notifications up to the operator's watermark count as read and have no mark.
 */
export interface NotificationReadsTable {
  operator_id: string;
  place: number;
}

export interface NotificationWatermarksTable {
  operator_id: string;
  place: number;
}

export interface SecretRestrictionRow {
  node_ids: string[] | null;
  tags: string | null;
}

export interface SecretsTable {
  name: string;
  /** Last version number of this name. Continues to increase even after the secret is removed. */
  version: number;
  /** The key with which `sealed` is encrypted. */
  key_id: string;
  /** The encrypted value, in base64. */
  sealed: string;
  description: string | null;
  /** Time in Unix milliseconds. */
  expires_at_ms: number | null;
  /** Equals `expires_at_ms` until the expiry event is recorded, and null afterward. */
  untold_expiry_ms: number | null;
  restriction: JsonText<SecretRestrictionRow> | null;
  created_at_ms: number;
  created_by: string;
  updated_at_ms: number;
  updated_by: string;
}

/** The newest version of each name. The row remains after the secret is removed. */
export interface SecretVersionsTable {
  name: string;
  version: number;
}

/** Previous secret values, stored while an operation that may contain them is open. */
export interface FormerSecretsTable {
  name: string;
  version: number;
  key_id: string;
  sealed: string;
  replaced_at: number;
}

export interface SchemaVersionTable {
  version: number;
  name: string;
  applied_at: number;
  /**
   * The oldest schema version whose releases can use this schema; null if only releases that support this version can
   * use it.
   */
  compatible_from: number | null;
}

export interface Schema {
  operators: OperatorsTable;
  sessions: SessionsTable;
  agents: AgentsTable;
  agent_tags: AgentTagsTable;
  agent_keys: AgentKeysTable;
  enrolment_tokens: EnrolmentTokensTable;
  modules: ModulesTable;
  module_revisions: ModuleRevisionsTable;
  contents: ContentsTable;
  content_pieces: ContentPiecesTable;
  module_files: ModuleFilesTable;
  assignments: AssignmentsTable;
  operations: OperationsTable;
  operation_payloads: OperationPayloadsTable;
  operation_resources: OperationResourcesTable;
  operation_outputs: OperationOutputsTable;
  applied_resources: AppliedResourcesTable;
  applied_modules: AppliedModulesTable;
  agent_state: AgentStateTable;
  drift_records: DriftRecordsTable;
  latest_drift: LatestDriftTable;
  drift_states: DriftStatesTable;
  runs: RunsTable;
  run_results: RunResultsTable;
  run_bases: RunBasesTable;
  audit_events: AuditEventsTable;
  audit_chain: AuditChainTable;
  leases: LeasesTable;
  replicas: ReplicasTable;
  replica_contacts: ReplicaContactsTable;
  replica_keys: ReplicaKeysTable;
  settings: SettingsTable;
  maintenance_windows: MaintenanceWindowsTable;
  web_login_codes: WebLoginCodesTable;
  answered_challenges: AnsweredChallengesTable;
  terminal_tickets: TerminalTicketsTable;
  channels: ChannelsTable;
  notifications: NotificationsTable;
  deliveries: DeliveriesTable;
  notification_reads: NotificationReadsTable;
  notification_watermarks: NotificationWatermarksTable;
  secrets: SecretsTable;
  secret_versions: SecretVersionsTable;
  former_secrets: FormerSecretsTable;
  spool_ack: SpoolAckTable;
  agent_usage: AgentUsageTable;
  terminal_sessions: TerminalSessionsTable;
  schema_version: SchemaVersionTable;
}
