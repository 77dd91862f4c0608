import type { AuditEvent } from '@muster/protocol/http';
import { type Key, keys } from './keys.ts';

/**
 * What an event makes stale, decided on values. Whatever is not looked at now is only marked and asked for again when
 * somebody looks; so an entry may be generous.
 */

/** What comes over the stream: an event of the audit log, or a hint that something changed. */
export type LiveMessage =
  | { readonly kind: 'event'; readonly event: AuditEvent }
  | {
      readonly kind: 'operation';
      readonly operation_id: string;
      readonly node_id: string;
      readonly run_id: string | null;
    }
  | { readonly kind: 'run'; readonly run_id: string }
  | { readonly kind: 'agent'; readonly node_id: string; readonly change: string }
  /** Many at once; null: too many to name. */
  | { readonly kind: 'agents'; readonly agents: readonly { readonly node_id: string }[] | null }
  | {
      readonly kind: 'operations';
      readonly operations:
        | readonly { readonly operation_id: string; readonly node_id: string; readonly run_id: string | null }[]
        | null;
    }
  /** The operator has read some, in another tab perhaps. */
  | { readonly kind: 'notification' }
  | { readonly kind: 'window' }
  | { readonly kind: 'output'; readonly operation_id: string; readonly node_id: string }
  /** Events are missing: everything may have changed. */
  | { readonly kind: 'gap' };

const fleet: readonly Key[] = [keys.overview, keys.reconcile];

export function staleAfter(message: LiveMessage): readonly Key[] {
  switch (message.kind) {
    case 'gap':
      return [[]];
    case 'operations':
      // Of many at once every view is asked for anew: what is not looked at is only marked.
      return [...fleet, keys.operations, ['operation'], ['output'], ['state'], ['run'], keys.runs, keys.drift];
    case 'operation':
      return [
        ...fleet,
        keys.operations,
        keys.operation(message.operation_id),
        keys.output(message.operation_id),
        keys.state(message.node_id),
        // A check for drift has the id of its record.
        keys.drift,
        keys.driftRecord(message.operation_id),
        ...(message.run_id === null ? [] : [keys.run(message.run_id), keys.runs]),
      ];
    case 'output':
      return [keys.output(message.operation_id)];
    case 'run':
      return [keys.run(message.run_id), keys.runs, keys.overview];
    case 'agent':
      // Its record is brought up to date by itself: live-agents.ts.
      return [keys.overview];
    case 'agents':
      return [keys.overview];
    case 'notification':
      return [keys.notifications, keys.overview];
    case 'window':
      return [keys.windows];
    case 'event':
      return [keys.audit, keys.notifications, ...byCategory(message.event)];
  }
}

function byCategory({ event_type, target }: AuditEvent): readonly Key[] {
  const [category] = event_type.split('.', 1);
  switch (category) {
    case 'agent':
      return [...fleet, keys.tags, ['matches']];
    case 'module':
      return [keys.modules, keys.module(target.name), keys.revisions(target.name), keys.reconcile];
    case 'assignment':
      return [keys.assignments, keys.assignment(target.name), keys.reconcile];
    case 'run':
      return [keys.runs, keys.run(target.id), keys.overview];
    case 'state':
      return [...fleet, keys.operations, keys.state(target.id)];
    case 'drift':
      return [...fleet, keys.drift, ['drift-record']];
    case 'secret':
      return [keys.secrets, keys.overview];
    case 'terminal':
      return [keys.terminals, ['terminal']];
    case 'channel':
      return [keys.channels];
    case 'window':
      return [keys.windows];
    case 'operator':
      return [keys.operators];
    case 'enrolment':
      return [keys.enrolmentTokens];
    case 'audit':
      return [keys.retention];
    case 'disk':
      return [keys.health, keys.status];
    case 'system':
      // The database is another than it was.
      return [[]];
    default:
      return [];
  }
}
