import type { NotifyingEvent } from '@muster/protocol/http';

/** Labels for event types that cause notifications: for one event, and for several. */
const labels: Readonly<Record<NotifyingEvent, readonly [one: string, many: string]>> = {
  'agent.pending': ['Agent pending approval', 'agents pending approval'],
  'agent.lost': ['Agent offline', 'agents offline'],
  'agent.returned': ['Agent returned', 'agents returned'],
  'agent.cloned': ['Key used by two machines', 'keys used by two machines'],
  'agent.key_rotated': ['Agent key changed', 'agent keys changed'],
  'agent.refused': ['Agent refused', 'agents refused'],
  'agent.limited': ['Agent over its limit', 'agents over their limit'],
  'drift.detected': ['Drift detected', 'drift detections'],
  'state.failed': ['Apply failed', 'applies failed'],
  'run.halted': ['Run halted', 'runs halted'],
  'secret.expiring': ['Secret expires', 'secrets expire'],
  'disk.low': ['Disk almost full', 'warnings of an almost full disk'],
  'system.restored': ['Restored from a backup', 'restores from a backup'],
  'audit.pruned': ['Audit log pruned', 'times the audit log was pruned'],
  'operator.added': ['Operator added', 'operators added'],
  'operator.removed': ['Operator removed', 'operators removed'],
  'channel.failing': ['Channel fails', 'channels fail'],
};

/** Returns an event type's label. A newer orchestrator may send a type without one. */
export const eventLabel = (type: string): string => labelsOf(type)?.[0] ?? type;

/** Returns a label for several events of a type, such as `5 agents pending approval`. */
export const eventsLabel = (type: string, count: number): string => `${count} ${labelsOf(type)?.[1] ?? `× ${type}`}`;

const labelsOf = (type: string) => (Object.hasOwn(labels, type) ? labels[type as NotifyingEvent] : undefined);
