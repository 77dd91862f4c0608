import type { Hint } from '../../bus/bus.ts';
import { toAuditEvent } from '../audit/audit-chain.ts';
import type { PlacedEvent } from '../audit/placed-event.ts';

/** What goes over a live stream, as Server-Sent Events. Pure: text from values. */

/** What somebody wants to see; undefined: all. */
export interface LiveFilter {
  readonly categories: ReadonlySet<string> | undefined;
  readonly node_id: string | undefined;
}

export function wants({ categories, node_id }: LiveFilter, event: PlacedEvent): boolean {
  if (categories !== undefined && !categories.has(event.category)) return false;
  return node_id === undefined || event.target_id === node_id || event.actor_id === node_id;
}

/** An event of the audit log. Its id is its place: where a client goes on that was cut off. */
export function eventFrame(event: PlacedEvent): string {
  const data = JSON.stringify({ place: event.place, hash: event.hash, ...toAuditEvent(event) });
  return `id: ${event.place}\ndata: ${data}\n\n`;
}

/** The first of a stream. What has an id and no data only says how far the client has come. */
export const openingFrame = (place: number): string => `retry: 2000\nid: ${place}\n\n`;

export const heartbeatFrame = (place: number): string => `: still here\nid: ${place}\n\n`;

/** The client asked to go on at a place that is not there: it looks anew at what it shows. */
export const gapFrame = (gap: { after: number; next: number; reason: 'pruned' | 'unknown' }): string =>
  `event: gap\ndata: ${JSON.stringify(gap)}\n\n`;

/** Something that has changed, without an id: a view looks anew. Nobody gets it later who was not there. */
export interface Passing {
  readonly event: 'operation' | 'operations' | 'output' | 'run' | 'agent' | 'agents' | 'window' | 'notification';
  readonly category: string;
  readonly node_id: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly frame: string;
  /** Nobody else's business. */
  readonly operator_id?: string;
  /** There may be ten thousand a second: only for who names the category, or an agent. */
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

/** What a hint is to those who watch; null for what only concerns the orchestrator's parts. */
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

/** @param operatorId whose stream it is */
export const wantsPassing = ({ categories, node_id }: LiveFilter, passing: Passing, operatorId: string): boolean =>
  (categories?.has(passing.category) ?? (node_id !== undefined || passing.onlyOnRequest !== true)) &&
  (node_id === undefined || passing.node_id === node_id) &&
  (passing.operator_id === undefined || passing.operator_id === operatorId);
