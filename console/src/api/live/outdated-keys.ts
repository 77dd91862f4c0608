import { type AuditEvent, notifyingEvents } from '@muster/protocol/http';
import { type Key, keys } from '../query-keys.ts';

/**
 * Maps event stream messages to the query keys whose cached responses become stale. Queries that no page uses are only
 * marked, not fetched, so an entry may include keys that did not change.
 */

/** An event stream message: an event from the audit log, or a hint that something changed. */
export type LiveMessage =
  | { readonly kind: 'event'; readonly event: AuditEvent }
  | ({ readonly kind: 'operation' } & OperationChange)
  /** Several operations changed; null if any operation may have changed. */
  | { readonly kind: 'operations'; readonly operations: readonly OperationChange[] | null }
  /** `run_id`: null if any run may have changed. */
  | { readonly kind: 'run'; readonly run_id: string | null }
  | ({ readonly kind: 'agent' } & AgentChange)
  | { readonly kind: 'agents'; readonly agents: readonly AgentChange[] | null }
  | { readonly kind: 'window' }
  /** The signed-in operator marked notifications as read, perhaps in another tab. */
  | { readonly kind: 'notification' }
  | { readonly kind: 'output'; readonly operation_id: string; readonly node_id: string }
  /** The stream skipped events, so anything may have changed. */
  | { readonly kind: 'gap' };

interface OperationChange {
  readonly operation_id: string;
  readonly node_id: string;
  readonly run_id: string | null;
}
interface AgentChange {
  readonly node_id: string;
  readonly change: string;
}

/** Frames with these names are hints; unnamed frames are events from the audit log. */
const kinds: ReadonlySet<string> = new Set<LiveMessage['kind']>([
  ...(['agent', 'agents', 'operation', 'operations', 'run', 'window', 'notification', 'output', 'gap'] as const),
]);

/** Parses a frame. Returns null if its kind is unknown. */
export function messageOf(event: string, data: string): LiveMessage | null {
  try {
    const value = JSON.parse(data);
    if (event === 'message') return { kind: 'event', event: value as AuditEvent };
    return kinds.has(event) ? { ...value, kind: event } : null;
  } catch {
    return null;
  }
}

/** All event categories, including those that the orchestrator sends only on request. */
export const categories =
  'agent,operator,auth,module,assignment,state,run,drift,secret,terminal,channel,window,audit,enrolment,discovery,disk,replica,system,notification,output';

/** Maximum number of operations to mark one by one. If a message names more, all operations are marked. */
const maxNamed = 50;
const notifying: ReadonlySet<string> = new Set(notifyingEvents);

const fleet: readonly Key[] = [keys.overview, keys.reconcile];

export function outdatedKeysAfter(message: LiveMessage): readonly Key[] {
  switch (message.kind) {
    case 'gap':
      return [[]];
    case 'operation':
      return [...fleet, keys.operations, ...ofOperation(message)];
    case 'operations':
      return [
        ...[...fleet, keys.operations],
        ...(message.operations === null || message.operations.length > maxNamed
          ? [['operation'], ['output'], ['state'], ['run'], keys.runs, keys.drift, ['drift-record']]
          : message.operations.flatMap(ofOperation)),
      ];
    case 'output':
      return [keys.output(message.operation_id)];
    case 'run':
      return [message.run_id === null ? ['run'] : keys.run(message.run_id), keys.runs, keys.lastApplies, keys.overview];
    case 'agent':
    case 'agents':
      // The agent records are updated in live-agents.ts.
      return [keys.overview];
    case 'window':
      return [keys.windows, ['values']];
    case 'notification':
      return [keys.notifications, keys.overview];
    case 'event':
      return [
        keys.audit,
        ...(notifying.has(message.event.event_type) ? [keys.notifications] : []),
        ...byCategory(message.event),
      ];
  }
}

const ofOperation = ({ operation_id, node_id, run_id }: OperationChange): readonly Key[] => [
  keys.operation(operation_id),
  keys.output(operation_id),
  keys.state(node_id),
  // The operation that checks for drift has the same id as the drift record.
  keys.drift,
  keys.driftRecord(operation_id),
  ...(run_id === null ? [] : [keys.run(run_id), keys.runs]),
];

function byCategory({ event_type, target }: AuditEvent): readonly Key[] {
  const [category = ''] = event_type.split('.', 1);
  switch (category) {
    case 'agent':
      return [...fleet, keys.tags, ['matches'], ['values']];
    case 'module':
      return [...fleet, keys.modules, keys.module(target.name), keys.revisions(target.name), ['values']];
    case 'assignment':
      return [keys.assignments, keys.assignment(target.name), keys.reconcile, ['values']];
    case 'run':
      return [keys.runs, keys.lastApplies, keys.run(target.id), keys.overview];
    case 'state':
      return [...fleet, keys.operations, keys.state(target.id)];
    case 'drift':
      return [...fleet, keys.drift, ['drift-record']];
    case 'secret':
      return [keys.secrets, keys.overview];
    case 'terminal':
      return [keys.terminals, ['terminal']];
    case 'auth':
      return [keys.sessions];
    case 'enrolment':
      return [keys.enrolmentTokens];
    case 'audit':
      return [keys.retention];
    case 'disk':
      return [keys.health, keys.status];
    case 'discovery':
      return [];
    case 'system':
      // The database was restored from a backup.
      return [[]];
    default: {
      // By convention, the key of a list starts with the plural of a noun, and the key of a single object with its
      // singular.
      const noun = category.replaceAll('_', '-');
      return [[`${noun}s`], [noun]];
    }
  }
}
