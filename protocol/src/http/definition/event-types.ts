/** All event types in the audit log. New types may be added, but the meaning of a type never changes. */

export type EventSeverity = 'info' | 'warning' | 'critical';

interface EventKind {
  /** Possible severities, the usual one first. */
  severity: readonly [EventSeverity, ...EventSeverity[]];
  when: string;
  /** Type of the event's target; empty if the event has no target. */
  target: string;
  /** Possible fields of `metadata`. */
  metadata: readonly string[];
}

/** Fields of an event that represents several refusals. */
const counted = ['count', 'since'] as const;
const operation = ['operation_id'] as const;

export const eventTypes = {
  'agent.pending': {
    severity: ['info'],
    when: 'a new agent waits for approval; after ten events in a minute, one event without a target counts further agents',
    target: 'agent',
    metadata: ['hostname', 'ip', 'pin_source', 'enrolment_token_id', ...counted],
  },
  'agent.approved': {
    severity: ['info'],
    when: 'an operator or an enrollment token approved an agent',
    target: 'agent',
    metadata: ['from', 'hostname', 'ip', 'pin_source', 'enrolment_token_id'],
  },
  'agent.rejected': {
    severity: ['warning'],
    when: 'an operator rejected an agent',
    target: 'agent',
    metadata: ['from'],
  },
  'agent.removed': { severity: ['info'], when: 'an operator removed an agent', target: 'agent', metadata: [] },
  'agent.tagged': {
    severity: ['info'],
    when: 'tags of an agent were set or removed',
    target: 'agent',
    metadata: ['tags', 'key', 'value'],
  },
  'agent.connected': {
    severity: ['info'],
    when: 'an agent connected for the first time, from another address, or with another version; other connections are not recorded',
    target: 'agent',
    metadata: ['ip', 'agent_version', 'former_ip', 'former_agent_version'],
  },
  'agent.lost': {
    severity: ['warning'],
    when: 'an approved agent was not seen for longer than `agents.lost_after_secs`',
    target: 'agent',
    metadata: ['last_seen_at'],
  },
  'agent.returned': {
    severity: ['info'],
    when: 'a lost agent has connected again',
    target: 'agent',
    metadata: ['ip', 'agent_version', 'lost_at'],
  },
  'agent.cloned': {
    severity: ['critical'],
    when: 'a second machine uses the key of a connected agent; at most once an hour for each agent',
    target: 'agent',
    metadata: ['ip', 'connected_from'],
  },
  'agent.key_rotated': {
    severity: ['warning'],
    when: 'an agent has replaced its key; the previous key is valid until `former_until`',
    target: 'agent',
    metadata: ['key', 'former_key', 'former_until', 'ip'],
  },
  'agent.limited': {
    severity: ['warning'],
    when: 'an agent has reached a daily limit (UTC); at most once a day for each `what`: `bytes` of reports and samples, `events` of drift and connections, or drift checks by `hints`',
    target: 'agent',
    metadata: ['what', 'limit'],
  },
  'agent.refused': {
    severity: ['warning'],
    when: 'a connection of an agent was refused (see below)',
    target: 'agent',
    metadata: ['code', 'ip', ...counted],
  },
  'assignment.created': {
    severity: ['info'],
    when: 'an assignment was created',
    target: 'assignment',
    metadata: ['modules', 'selector', 'mode'],
  },
  'assignment.updated': {
    severity: ['info'],
    when: 'an assignment was changed; `changed` lists the fields',
    target: 'assignment',
    metadata: ['changed', 'modules', 'selector', 'mode'],
  },
  'assignment.removed': { severity: ['info'], when: 'an assignment was removed', target: 'assignment', metadata: [] },
  'audit.pruned': {
    severity: ['warning'],
    when: 'old audit events were removed by an operator or because of their age; `place` and `hash` identify the last removed event',
    target: '',
    metadata: ['before', 'deleted', 'place', 'hash'],
  },
  'audit.retention_changed': {
    severity: ['info'],
    when: 'an operator set the retention of audit events, or removed that setting, so that the configuration applies',
    target: '',
    metadata: ['from', 'to'],
  },
  'auth.signed_in': {
    severity: ['info'],
    when: 'an operator signed in; `bound` is true if the signature named this server, and `server` is the name',
    target: '',
    metadata: ['web', 'bound', 'server'],
  },
  'auth.refused': {
    severity: ['warning'],
    when: 'a sign-in was refused because the key is unknown or removed, the signature or code is not valid, or there were too many requests (see below)',
    target: '',
    metadata: ['code', 'ip', 'key_id', ...counted],
  },
  'auth.forbidden': {
    severity: ['warning'],
    when: 'an operator who is not an admin sent a request that requires an admin, or a console session requested a token (see below)',
    target: 'route',
    metadata: ['code', 'ip', ...counted],
  },
  'auth.plaintext_refused': {
    severity: ['warning'],
    when: 'the value of a secret was refused because it was sent over plain HTTP from another machine (see below)',
    target: 'route',
    metadata: ['code', 'ip', ...counted],
  },
  'auth.console_opened': {
    severity: ['info'],
    when: 'the console exchanged the token of a sign-in for a console session',
    target: '',
    metadata: ['session_id'],
  },
  'auth.sessions_ended': {
    severity: ['info'],
    when: 'an operator ended another one of their sign-in sessions, or all of them',
    target: '',
    metadata: ['session_id', 'count'],
  },
  'auth.renewed': { severity: ['info'], when: 'an operator renewed the sign-in session', target: '', metadata: [] },
  'auth.signed_out': {
    severity: ['info'],
    when: 'an operator signed out, or a sign-in session was ended because of `sign_in.require_bound`',
    target: 'operator',
    metadata: [],
  },
  'auth.web_login_requested': {
    severity: ['info'],
    when: 'an operator requested a code to sign in to a browser',
    target: '',
    metadata: [],
  },
  'channel.created': {
    severity: ['info'],
    when: 'a notification channel was created',
    target: 'channel',
    metadata: ['channel_type', 'config'],
  },
  'channel.updated': {
    severity: ['info'],
    when: 'the name or the configuration of a channel was changed',
    target: 'channel',
    metadata: ['former_name', 'config'],
  },
  'channel.removed': {
    severity: ['info'],
    when: 'a channel was removed',
    target: 'channel',
    metadata: ['channel_type'],
  },
  'channel.tested': {
    severity: ['info', 'warning'],
    when: 'an operator sent a test message; `warning` if it was not delivered',
    target: 'channel',
    metadata: ['delivered', 'status'],
  },
  'channel.failing': {
    severity: ['warning'],
    when: 'a channel fails repeatedly',
    target: 'channel',
    metadata: ['failures', 'status'],
  },
  'channel.recovered': {
    severity: ['info'],
    when: 'a channel that failed repeatedly accepts messages again',
    target: 'channel',
    metadata: ['failing_since', 'seconds'],
  },
  'channel.dropped': {
    severity: ['warning'],
    when: 'messages to a channel were dropped after repeated failures',
    target: 'channel',
    metadata: ['count', 'event_id'],
  },
  'discovery.sent': {
    severity: ['info'],
    when: 'an operator announced this orchestrator to the network',
    target: 'discovery',
    metadata: ['sent_to', 'failed'],
  },
  'drift.requested': {
    severity: ['info'],
    when: 'an operator requested a drift check',
    target: 'agent',
    metadata: operation,
  },
  'drift.detected': {
    severity: ['warning'],
    when: 'resources of an agent have drifted, or drifted further: other resources, other fields, or a difference that was not accepted',
    target: 'agent',
    metadata: ['drift_id', 'resources', 'count'],
  },
  'drift.resolved': {
    severity: ['info'],
    when: 'a check or an apply found that an agent that had drifted is in sync again',
    target: 'agent',
    metadata: ['drift_id', 'operation_id'],
  },
  'drift.accepted': {
    severity: ['info'],
    when: 'an operator accepted the drift of an agent',
    target: 'agent',
    metadata: ['drift_id', 'assignment', 'reason', 'resources', 'count'],
  },
  'drift.unaccepted': {
    severity: ['info'],
    when: 'the acceptance of drift ended because an operator withdrew it, a check found other drift, or an apply repaired only a part of the drift',
    target: 'agent',
    metadata: ['drift_id', 'operation_id', 'assignment', 'because'],
  },
  'enrolment.created': {
    severity: ['info'],
    when: 'an enrollment token was created',
    target: 'enrolment_token',
    metadata: ['approve', 'tags', 'expires_at'],
  },
  'enrolment.revoked': {
    severity: ['info'],
    when: 'an enrollment token was revoked',
    target: 'enrolment_token',
    metadata: [],
  },
  'module.uploaded': {
    severity: ['info'],
    when: 'a revision of a module was uploaded',
    target: 'module',
    metadata: ['revision'],
  },
  'module.removed': { severity: ['info'], when: 'a module was removed', target: 'module', metadata: [] },
  'operator.added': {
    severity: ['info'],
    when: 'an operator was added, or the orchestrator created the first operator when it started',
    target: 'operator',
    metadata: ['role', 'bootstrap'],
  },
  'operator.removed': {
    severity: ['info'],
    when: 'an operator was removed; its `enrolment_tokens` were revoked, and its `terminals` were ended',
    target: 'operator',
    metadata: ['enrolment_tokens', 'terminals'],
  },
  'run.started': {
    severity: ['info'],
    when: 'an operator started an apply or plan for an assignment or for named agents',
    target: 'run',
    metadata: ['agents', 'modules', 'batch', 'max_failures', 'canary', 'offline', 'ttl', 'plan_run_id'],
  },
  'run.halted': {
    severity: ['critical'],
    when: 'a run was halted because of its failures',
    target: 'run',
    metadata: ['reason', 'requested_by'],
  },
  'run.cancelled': { severity: ['warning'], when: 'an operator canceled a run', target: 'run', metadata: [] },
  'run.ended': {
    severity: ['info'],
    when: 'the operation of the last agent of a run has ended',
    target: 'run',
    metadata: [],
  },
  'secret.created': {
    severity: ['info'],
    when: 'a secret was created',
    target: 'secret',
    metadata: ['version', 'expires_at', 'restriction'],
  },
  'secret.updated': {
    severity: ['info'],
    when: 'a secret was changed; `changed` lists its fields',
    target: 'secret',
    metadata: ['changed', 'version', 'expires_at', 'restriction'],
  },
  'secret.removed': { severity: ['info'], when: 'a secret was removed', target: 'secret', metadata: [] },
  'disk.low': {
    severity: ['critical'],
    when: 'the disk of the orchestrator has less free space than `disk.reserve`, so new work is refused',
    target: '',
    metadata: ['size_bytes', 'free_bytes', 'reserve_bytes'],
  },
  'disk.recovered': {
    severity: ['info'],
    when: 'the disk has enough free space again',
    target: '',
    metadata: ['size_bytes', 'free_bytes', 'reserve_bytes'],
  },
  'secret.expiring': {
    severity: ['warning'],
    when: 'a secret expires soon or has expired; once for each expiry time',
    target: 'secret',
    metadata: ['expires_at'],
  },
  'secret.key_rotated': {
    severity: ['info', 'warning'],
    when: 'secrets were re-encrypted with another key; `warning` if some could not be decrypted',
    target: '',
    metadata: ['key_id', 'reencrypted', 'retired', 'unreadable'],
  },
  'state.requested': {
    severity: ['info'],
    when: 'an operator requested an apply or plan on one agent',
    target: 'agent',
    metadata: [...operation, 'modules'],
  },
  'state.applied': {
    severity: ['info'],
    when: 'an apply has succeeded',
    target: 'agent',
    metadata: [...operation, 'requested_by', 'run_id', 'status', 'summary'],
  },
  'state.planned': {
    severity: ['info'],
    when: 'a plan has succeeded',
    target: 'agent',
    metadata: [...operation, 'requested_by', 'run_id', 'status', 'summary'],
  },
  'state.failed': {
    severity: ['warning'],
    when: 'an apply or plan has failed, or its outcome is unknown',
    target: 'agent',
    metadata: [...operation, 'requested_by', 'run_id', 'status', 'summary'],
  },
  'state.cancel_requested': {
    severity: ['info'],
    when: 'an operator requested the cancellation of an operation',
    target: 'agent',
    metadata: operation,
  },
  'state.cancelled': {
    severity: ['warning'],
    when: 'an operation ended because it was canceled',
    target: 'agent',
    metadata: [...operation, 'requested_by', 'run_id', 'status', 'summary'],
  },
  'replica.drain_requested': {
    severity: ['info'],
    when: 'an admin drained a replica: its agents and its work move to other replicas',
    target: '',
    metadata: ['replica'],
  },
  'replica.undrain_requested': {
    severity: ['info'],
    when: 'an admin took back the draining of a replica: it is used again',
    target: '',
    metadata: ['replica'],
  },
  'system.restored': {
    severity: ['warning'],
    when: 'the orchestrator started from a backup; operations that were open in the backup have ended, and its enrollment tokens are revoked',
    target: '',
    metadata: ['backup_id', 'backup_created_at'],
  },
  'terminal.opened': {
    severity: ['info'],
    when: 'an operator opened a terminal',
    target: 'agent',
    metadata: ['session_id', 'shell', 'user'],
  },
  'terminal.joined': {
    severity: ['info'],
    when: 'an operator joined an open terminal',
    target: 'agent',
    metadata: ['session_id', 'mode'],
  },
  'terminal.closed': {
    severity: ['info'],
    when: 'a terminal has ended',
    target: 'agent',
    metadata: ['session_id', 'operator_id', 'reason', 'status', 'sha256', 'bytes', 'duration_secs'],
  },
  'window.created': {
    severity: ['info'],
    when: 'a maintenance window was created',
    target: 'window',
    metadata: ['starts_at', 'ends_at', 'selector'],
  },
  'window.updated': {
    severity: ['info'],
    when: 'a maintenance window was changed',
    target: 'window',
    metadata: ['ends_at', 'reason'],
  },
  'window.removed': {
    severity: ['info'],
    when: 'a maintenance window was removed',
    target: 'window',
    metadata: ['starts_at', 'ends_at', 'selector'],
  },
} as const satisfies Readonly<Record<string, EventKind>>;

export type EventType = keyof typeof eventTypes;
