import { isKeyId, MusterError } from '@muster/protocol';
import type { Database } from '../../store/database.ts';
import { agentIdTakingName } from '../../store/queries/agents/agents.ts';
import { operatorTaking } from '../../store/queries/operators.ts';
import type { Context } from '../shared/context.ts';
import type { PlacedEvent } from './placed-event.ts';

/** A filter for audit events, shared by the list, the export, and the live stream. */
export interface AuditFilter {
  /** Node id or name. */
  agent?: string | undefined;
  /** Operator id or username. */
  operator?: string | undefined;
  event_type?: string | undefined;
  category?: string | undefined;
  /** RFC 3339, inclusive. */
  after?: string | undefined;
  /** RFC 3339, exclusive. */
  before?: string | undefined;
}

/** A filter with names resolved to ids and times parsed to Unix milliseconds. */
export interface ReadFilter {
  readonly agent: string | undefined;
  readonly operator: string | undefined;
  readonly event_type: string | undefined;
  readonly category: string | undefined;
  readonly after: number | undefined;
  readonly before: number | undefined;
}

export async function readFilter({ db }: Pick<Context, 'db'>, filter: AuditFilter): Promise<ReadFilter> {
  return {
    after: filter.after === undefined ? undefined : readInstant(filter.after, '/after'),
    before: filter.before === undefined ? undefined : readInstant(filter.before, '/before'),
    agent: filter.agent === undefined ? undefined : await agentIdOf(db, filter.agent),
    operator: filter.operator === undefined ? undefined : await operatorIdOf(db, filter.operator),
    event_type: filter.event_type,
    category: filter.category,
  };
}

export function passes(filter: ReadFilter, event: PlacedEvent): boolean {
  if (filter.agent !== undefined && event.target_id !== filter.agent && event.actor_id !== filter.agent) return false;
  if (filter.operator !== undefined && event.actor_id !== filter.operator) return false;
  if (filter.event_type !== undefined && event.event_type !== filter.event_type) return false;
  if (filter.category !== undefined && event.category !== filter.category) return false;
  if (filter.after !== undefined && event.timestamp_ms < filter.after) return false;
  return filter.before === undefined || event.timestamp_ms < filter.before;
}

/** An ID that no operator has. Not the empty ID, because the empty ID matches system events. */
const unknownId = '-';

/**
 * Finds an agent by its id, or by a current or previous name. Does not search event summaries, because a hostname may
 * equal another agent's name.
 */
export async function agentIdOf(db: Database, idOrName: string): Promise<string> {
  if (isKeyId(idOrName)) return idOrName;
  return (await db.get(agentIdTakingName, { name: idOrName, node_id: '' }))?.node_id ?? unknownId;
}

async function operatorIdOf(db: Database, idOrName: string): Promise<string> {
  if (isKeyId(idOrName)) return idOrName;
  return (await db.get(operatorTaking, { username: idOrName }))?.operator_id ?? unknownId;
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Parses an RFC 3339 time.
 * @param path JSON pointer for the error
 * @returns Unix milliseconds
 * @throws MusterError invalid_input
 */
export function readInstant(text: string, path: string): number {
  const time = rfc3339.test(text) ? Date.parse(text) : Number.NaN;
  // Rejects dates that do not exist, because Date.parse reads February 31 as March 3.
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(time) || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text.slice(0, 10)) {
    const message = 'must be a time like 2026-01-31T08:00:00Z';
    throw new MusterError('invalid_input', `${path.slice(1)} ${message}`, [{ path, message }]);
  }
  return time;
}
