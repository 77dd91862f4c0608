import type { EventType, NotifyingEvent } from '@muster/protocol/http';

/** Labels of event types. */
const labels: Readonly<Record<EventType, string>> = {
  'agent.pending': 'Agent pending approval',
  'agent.approved': 'Agent approved',
  'agent.rejected': 'Agent rejected',
  'agent.removed': 'Agent removed',
  'agent.tagged': 'Agent tagged',
  'agent.connected': 'Agent connected',
  'agent.lost': 'Agent offline',
  'agent.returned': 'Agent returned',
  'agent.cloned': 'Key used by two machines',
  'agent.key_rotated': 'Agent key changed',
  'agent.limited': 'Agent over its limit',
  'agent.refused': 'Agent refused',
  'assignment.created': 'Assignment created',
  'assignment.updated': 'Assignment changed',
  'assignment.removed': 'Assignment removed',
  'audit.pruned': 'Audit log pruned',
  'audit.retention_changed': 'Retention changed',
  'auth.signed_in': 'Signed in',
  'auth.refused': 'Sign-in refused',
  'auth.forbidden': 'Permission denied',
  'auth.plaintext_refused': 'Plaintext refused',
  'auth.console_opened': 'Console session opened',
  'auth.sessions_ended': 'Sessions ended',
  'auth.renewed': 'Session renewed',
  'auth.signed_out': 'Signed out',
  'auth.web_login_requested': 'Sign-in link requested',
  'channel.created': 'Channel added',
  'channel.updated': 'Channel changed',
  'channel.removed': 'Channel removed',
  'channel.tested': 'Channel tested',
  'channel.failing': 'Channel fails',
  'channel.recovered': 'Channel recovered',
  'channel.dropped': 'Notification dropped',
  'discovery.sent': 'Discovery sent',
  'drift.requested': 'Drift check requested',
  'drift.detected': 'Drift detected',
  'drift.resolved': 'Drift resolved',
  'drift.accepted': 'Drift accepted',
  'drift.unaccepted': 'Acceptance withdrawn',
  'enrolment.created': 'Token created',
  'enrolment.revoked': 'Token revoked',
  'module.uploaded': 'Module saved',
  'module.removed': 'Module removed',
  'operator.added': 'Operator added',
  'operator.removed': 'Operator removed',
  'run.started': 'Run started',
  'run.halted': 'Run halted',
  'run.cancelled': 'Run canceled',
  'run.ended': 'Run ended',
  'secret.created': 'Secret created',
  'secret.updated': 'Secret changed',
  'secret.removed': 'Secret removed',
  'secret.expiring': 'Secret expires',
  'secret.key_rotated': 'Encryption key rotated',
  'disk.low': 'Disk almost full',
  'disk.recovered': 'Disk space recovered',
  'state.requested': 'Operation requested',
  'state.applied': 'Apply succeeded',
  'state.planned': 'Plan succeeded',
  'state.failed': 'Apply failed',
  'state.cancel_requested': 'Cancellation requested',
  'state.cancelled': 'Operation canceled',
  'replica.drain_requested': 'Replica drained',
  'replica.undrain_requested': 'Replica undrained',
  'system.restored': 'Restored from a backup',
  'terminal.opened': 'Terminal opened',
  'terminal.joined': 'Terminal joined',
  'terminal.closed': 'Terminal closed',
  'window.created': 'Window created',
  'window.updated': 'Window changed',
  'window.removed': 'Window removed',
};

/** Labels for several events of a type that causes notifications. */
const plurals: Readonly<Record<NotifyingEvent, string>> = {
  'agent.pending': 'enrollment requests',
  'agent.lost': 'agents offline',
  'agent.returned': 'agents returned',
  'agent.cloned': 'keys used by two machines',
  'agent.key_rotated': 'agent keys changed',
  'agent.refused': 'agents refused',
  'agent.limited': 'agents over their limit',
  'drift.detected': 'drift detections',
  'state.failed': 'applies failed',
  'run.halted': 'runs halted',
  'secret.expiring': 'secrets expire',
  'disk.low': 'warnings of an almost full disk',
  'system.restored': 'restores from a backup',
  'audit.pruned': 'times the audit log was pruned',
  'operator.added': 'operators added',
  'operator.removed': 'operators removed',
  'channel.failing': 'channels fail',
};

/** Labels of the categories of events, which are the first parts of their types, if the category is not a word itself. */
const categories: Readonly<Record<string, string>> = {
  audit: 'Audit log',
  auth: 'Sign-in',
  disk: 'Disk space',
  enrolment: 'Enrollment',
  state: 'Operation',
  window: 'Maintenance window',
};

export const categoryLabel = (category: string): string =>
  Object.hasOwn(categories, category)
    ? (categories[category] as string)
    : category.charAt(0).toUpperCase() + category.slice(1);

/** Returns an event type's label. A newer orchestrator may send a type without one. */
export const eventLabel = (type: string): string => (Object.hasOwn(labels, type) ? labels[type as EventType] : type);

/** Returns a label for several events of a type, such as `5 enrollment requests`. */
export const eventsLabel = (type: string, count: number): string =>
  `${count} ${Object.hasOwn(plurals, type) ? plurals[type as NotifyingEvent] : `× ${eventLabel(type)}`}`;
