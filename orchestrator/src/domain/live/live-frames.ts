import type { Hint } from '../../bus/bus.ts';
import { toAuditEvent } from '../audit/audit-chain.ts';
import type { PlacedEvent } from '../audit/placed-event.ts';

/** A stream's filter. Undefined fields match everything. */
export interface LiveFilter {
  readonly categories: ReadonlySet<string> | undefined;
  readonly node_id: string | undefined;
}

export function wants({ categories, node_id }: LiveFilter, event: PlacedEvent): boolean {
  if (categories !== undefined && !categories.has(event.category)) return false;
  return node_id === undefined || event.target_id === node_id || event.actor_id === node_id;
}

/** Formats an audit event's frame. The frame id is the event's position, from which a disconnected client resumes. */
export function eventFrame(event: PlacedEvent): string {
  const data = JSON.stringify({ place: event.place, hash: event.hash, ...toAuditEvent(event) });
  return `id: ${event.place}\ndata: ${data}\n\n`;
}

/** Formats the first frame of a stream. A frame with an id and no data only updates the client's position. */
export const openingFrame = (position: number): string => `retry: 2000\nid: ${position}\n\n`;

export const heartbeatFrame = (position: number): string => `: still here\nid: ${position}\n\n`;

/** Formats the frame that reports missed events. The client must then reload its view. */
export const gapFrame = (gap: { after: number; next: number; reason: 'pruned' | 'unknown' }): string =>
  `event: gap\ndata: ${JSON.stringify(gap)}\n\n`;

/** A change that makes a view reload. Its frame has no id, so that reconnecting clients do not get it again. */
export interface Passing {
  readonly event: 'operation' | 'operations' | 'output' | 'run' | 'agent' | 'agents' | 'window' | 'notification';
  readonly category: string;
  readonly node_id: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly frame: string;
  /** The operator whose streams receive the change. Default: all streams. */
  readonly operator_id?: string;
  /**
   * Thousands of these changes may occur each second, so only followers that request the category or an agent receive
   * them.
   */
  readonly onlyOnRequest?: true;
}

export const passing = (
  event: Passing['event'],
  category: string,
  node_id: string | undefined,
  data: Passing['data'],
): Passing => ({ event, category, node_id, data, frame: `event: ${event}\ndata: ${JSON.stringify(data)}\n\n` });

const changeOf = {
  agent_linked: 'connected',
  agent_departed: 'disconnected',
  agent_attributes: 'attributes',
  agent_changed: 'changed',
  agent_removed: 'removed',
} as const;

/** Returns the change for a hint; null for hints that are internal to the orchestrator. */
export function passingOf(hint: Hint): Passing | null {
  switch (hint.type) {
    case 'operation_ended': {
      const { type: _, ...data } = hint;
      return passing('operation', 'state', hint.node_id, data);
    }
    case 'output': {
      const { type: _, ...data } = hint;
      return { ...passing('output', 'output', hint.node_id, data), onlyOnRequest: true };
    }
    case 'operation_running': {
      const { type: _, ...data } = hint;
      return passing('operation', 'state', hint.node_id, { ...data, status: 'running' });
    }
    case 'run_changed':
    case 'run_ended':
      return passing('run', 'run', undefined, { run_id: hint.run_id });
    case 'agent_linked':
    case 'agent_departed':
    case 'agent_attributes':
    case 'agent_changed':
    case 'agent_removed':
      return passing('agent', 'agent', hint.node_id, { node_id: hint.node_id, change: changeOf[hint.type] });
    case 'notifications_read':
      return { ...passing('notification', 'notification', undefined, {}), operator_id: hint.operator_id };
    case 'windows_changed':
      return passing('window', 'window', undefined, {});
    default:
      return null;
  }
}

export const wantsPassing = ({ categories, node_id }: LiveFilter, passing: Passing, operatorId: string): boolean =>
  (categories?.has(passing.category) ?? (node_id !== undefined || passing.onlyOnRequest !== true)) &&
  (node_id === undefined || passing.node_id === node_id) &&
  (passing.operator_id === undefined || passing.operator_id === operatorId);
