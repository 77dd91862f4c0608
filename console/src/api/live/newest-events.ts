import type { AuditEvent } from '@muster/protocol/http';
import { isPlanEvent } from './plan-events.ts';

export const maxEvents = 50;

/** Maximum number of audit log pages to read for {@link newestEvents}. A plan on many agents fills several. */
const maxPages = 5;

/**
 * Prepends newer events to a list in newest-first order. Skips events that the list already contains.
 * @param newer oldest first
 */
export function withNewer(events: readonly AuditEvent[], newer: readonly AuditEvent[]): AuditEvent[] {
  const known = new Set(events.map(({ id }) => id));
  return [...newer.filter(({ id }) => !known.has(id)).toReversed(), ...events].slice(0, maxEvents);
}

interface Page {
  readonly events: readonly AuditEvent[];
  readonly next_cursor: string | null;
}

/**
 * Reads the newest events, without those of plans, because plans change nothing.
 * @param read reads a page in newest-first order, starting at a cursor
 */
export async function newestEvents(read: (cursor: string | null) => Promise<Page>): Promise<AuditEvent[]> {
  const events: AuditEvent[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < maxPages && events.length < maxEvents; page++) {
    const answer: Page = await read(cursor);
    events.push(...answer.events.filter((event) => !isPlanEvent(event)));
    cursor = answer.next_cursor;
    if (cursor === null) break;
  }
  return events.slice(0, maxEvents);
}
