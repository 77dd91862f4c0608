import type { OperationKind, OperationStatus, ResourceResult, Summary } from '@muster/protocol';
import type { AuditEvent, ChannelType, DriftAcceptance } from '@muster/protocol/http';
import type { ColumnType, Generated } from 'kysely';
import type { JsonText } from './json-text.ts';

/**
 * The tables as the newest migration leaves them. Ids are text; times are Unix seconds unless the name says otherwise;
 * lists and objects are JSON in text. Both databases hold exactly these types, so a row reads the same from either.
 */

/** True or false, kept as 1 or 0 in both databases; a boolean may be written. */
export type Flag = ColumnType<0 | 1, 0 | 1 | boolean, 0 | 1 | boolean>;

type StringMap = Record<string, string>;

export interface OperatorsTable {
  operator_id: string;
  public_key: string;
  username: string;
  role: 'admin' | 'operator';
  added_at: number;
  /** An operator_id, or `bootstrap`. */
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
  /** When the signature was given; renewals keep it. */
  signed_in_at: number;
  /** 1: the signature named this server; renewals keep it. */
  bound: number;
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
  /** Where the agent's pin of our key came from, as it says. */
  pin_source: string;
  enrolment_token_id: string | null;
  first_seen_at: number;
  /** When it was found to be lost; null while it is not. */
  lost_at: number | null;
  /** Where it connected from the last time. */
  remote_ip: string | null;
  /** When the last `agent.cloned` event about it was recorded. */
  clone_seen_at: number | null;
}

export interface AgentTagsTable {
  node_id: string;
  key: string;
  value: string;
}

/** The keys in force of each agent: one, or two while a rotation is under way. */
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
  /** The newest one in `module_revisions`. */
  revision: number;
  uploaded_at: number;
  uploaded_by: string;
}

export interface ModuleRevisionsTable {
  name: string;
  revision: number;
  content: string;
  digest: string;
  uploaded_at: number;
  uploaded_by: string;
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
  /** Set when somebody asked for its end while the agent had it. */
  cancel_requested_at: number | null;
  /** Of a drift check: what asked for it. */
  trigger: 'operator' | 'schedule' | 'watch' | 'audit' | null;
  summary: JsonText<Summary> | null;
  error: string | null;
  /** Of the resolved desired set that the agent is sent; null for a drift check, which has none. */
  payload_digest: string | null;
  snapshot_operation_id: string | null;
  /** Modules of the request itself; null for what an earlier release queued. */
  requested_modules: JsonText<string[]> | null;
  /** Of a plan that succeeded: what it would do, as its agent sums it up. */
  plan_digest: string | null;
  /** Of a plan: the versions of the secrets it names. */
  secret_versions: JsonText<Record<string, number>> | null;
}

/** Resolved desired sets, each once however many agents are sent it. */
export interface OperationPayloadsTable {
  /** SHA-256 of the text, hex. */
  digest: string;
  payload: JsonText<unknown>;
}

export interface OperationResourcesTable {
  operation_id: string;
  position: number;
  result: JsonText<ResourceResult>;
}

export interface OperationOutputsTable {
  operation_id: string;
  resource_key: string;
  stdout: string;
  stderr: string;
  exit_code: number | null;
  truncated: Flag;
}

/** What is applied on each machine: what is in place, what waits to be removed, what could not be applied. */
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
  /** An apply succeeded in putting it in place, and it was not removed since. */
  in_place: Flag;
}

export interface AgentStateTable {
  node_id: string;
  snapshot_operation_id: string | null;
  updated_at: number;
  /** When drift is to be checked; null before something is applied, and while an agent that was away then is not back. */
  drift_due_at: number | null;
  /** The newest apply that ended, unless that succeeded or was cancelled. */
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
  /** By whom its deviation was accepted, when it was made or since. */
  accepted: JsonText<DriftAcceptance> | null;
}

/** Of each agent the newest record of `drift_records`. */
export interface LatestDriftTable {
  node_id: string;
  drift_id: string;
  status: DriftRecordsTable['status'];
}

/** Machines that have drifted, until they are in sync again. */
export interface DriftStatesTable {
  node_id: string;
  /** Empty: from what was applied; `audit:` and the name of an assignment: from what that declares. */
  scope: string;
  /** The fields of each resource that moved, by key; null: an earlier release did not say. */
  drifted: JsonText<Record<string, string[]>> | null;
  since: number;
  /** The newest record that found it; null: an earlier release did not say. */
  drift_id: string | null;
  /** What each resource is like, by key: tells whether a later check found the same. */
  fingerprints: JsonText<Record<string, string>> | null;
  /** Who said that all of it is known and stays. */
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
}

/** What a run was about when it was asked for. */
export interface RunBasesTable {
  run_id: string;
  basis: JsonText<unknown>;
}

export interface RunResultsTable {
  run_id: string;
  node_id: string;
  operation_id: string | null;
  /** `waiting` before the agent's turn, then what its operation has. */
  status: 'waiting' | OperationStatus;
  error: string | null;
  /** In which order agents get their turn; null in runs of an earlier release. */
  position: number | null;
}

export interface AuditEventsTable {
  /** Grows with every event; on PostgreSQL it may have gaps and need not follow the order of commits. */
  seq: Generated<number>;
  id: string;
  event_type: string;
  /** The part of the type before its dot. */
  category: string;
  severity: 'info' | 'warning' | 'critical';
  /** Unix milliseconds. */
  timestamp_ms: number;
  actor_type: string;
  actor_id: string;
  actor_name: string;
  target_type: string;
  target_id: string;
  target_name: string;
  summary: string;
  metadata: JsonText<Record<string, unknown>>;
  /** In the chain; null until the event has one. */
  place: number | null;
  /** SHA-256 over the hash before it and the event, lower-case hex. */
  hash: string | null;
}

/** How far the chain reaches, at both ends. */
export interface AuditChainTable {
  name: 'head' | 'anchor' | 'cut' | 'history';
  place: number;
  hash: string;
}

/** Work that one process does at a time. */
export interface LeasesTable {
  name: string;
  holder: string;
  /** Grows with every taking, so that a former holder's work can be refused. */
  token: number;
  /** Unix milliseconds. */
  expires_ms: number;
}

export interface SettingsTable {
  key: string;
  value: string;
}

/** A window is open from `starts_at` until just before `ends_at`. */
export interface MaintenanceWindowsTable {
  id: string;
  starts_at: number;
  ends_at: number;
  reason: string;
  /** Null: for every agent. */
  selector: string | null;
  created_at: number;
  created_by: string;
}

/** Codes that a signed-in operator hands to a browser, which changes one for a session of its own. */
export interface WebLoginCodesTable {
  code_hash: string;
  operator_id: string;
  /** Of the session that asked for it: the code ends with that. */
  session_hash: string;
  /** When the signature was given: the new session can be renewed no longer than the old one. */
  signed_in_at: number;
  expires_at: number;
}

/** How far each agent's spool is committed here; `instance_id` is of the agent process that numbered it. */
export interface SpoolAckTable {
  node_id: string;
  instance_id: string;
  seq: number;
}

/** What an agent has caused to be stored on a day; rows are written in steps, so that few reports pay for one. */
export interface AgentUsageTable {
  node_id: string;
  /** Days since 1970, UTC. */
  day: number;
  bytes: number;
  /** Events that follow from what it says of its own accord. */
  events: number;
  /** Drift checks that its hints asked for. */
  hints: number;
  /** Bits of the limits that `agent.limited` was recorded for on that day. */
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
  /** Of the transcript's file when the session ended. */
  transcript_sha256: string | null;
  transcript_bytes: number | null;
}

export interface ChannelsTable {
  channel_id: string;
  name: string;
  channel_type: ChannelType;
  /** Under which key `sealed` is. */
  key_id: string;
  /** The config, encrypted as a whole: most addresses of channels are secrets. */
  sealed: string;
  created_at: number;
  created_by: string;
  /** Attempts that failed since one was delivered. */
  failures: number;
  /** Unix milliseconds; nothing is sent to it before. */
  retry_at_ms: number;
  /** Unix seconds, once it has been called failing; null while it is not. */
  failing_since: number | null;
}

export interface NotificationsTable {
  notification_id: string;
  /** Of the event. */
  place: number;
  event_id: string;
  event_type: string;
  severity: 'info' | 'warning' | 'critical';
  summary: string;
  timestamp_ms: number;
  /** The agent it is about, if it is about one. */
  node_id: string | null;
  suppressed: number;
  event: JsonText<AuditEvent>;
}

/** The outbox: what is still to be sent. A row goes when it was delivered or given up. */
export interface DeliveriesTable {
  channel_id: string;
  /** Of the notification. */
  place: number;
  delivery_id: string;
  attempts: number;
  created_at_ms: number;
}

/** What an operator has read one by one, above the place up to which all is read. */
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
  /** Counts the values that this name ever had. */
  version: number;
  /** The key that `sealed` is encrypted under. */
  key_id: string;
  /** The value, encrypted; base64. */
  sealed: string;
  description: string | null;
  /** Unix milliseconds. */
  expires_at_ms: number | null;
  /** `expires_at_ms` until somebody was told that it comes. */
  untold_expiry_ms: number | null;
  restriction: JsonText<SecretRestrictionRow> | null;
  created_at_ms: number;
  created_by: string;
  updated_at_ms: number;
  updated_by: string;
}

/** The newest version of each name there ever was; it stays when the secret is removed. */
export interface SecretVersionsTable {
  name: string;
  version: number;
}

/** What a secret was before, while an operation is open that may have been sent with it. */
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
  assignments: AssignmentsTable;
  operations: OperationsTable;
  operation_payloads: OperationPayloadsTable;
  operation_resources: OperationResourcesTable;
  operation_outputs: OperationOutputsTable;
  applied_resources: AppliedResourcesTable;
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
  settings: SettingsTable;
  maintenance_windows: MaintenanceWindowsTable;
  web_login_codes: WebLoginCodesTable;
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
