import { setImmediate as nextTurn } from 'node:timers/promises';
import { placedEvents } from '../../store/queries/audit.ts';
import type { Context } from '../shared/context.ts';
import { toAuditEvent } from './audit-chain.ts';
import { type AuditFilter, passes, readFilter } from './audit-filter.ts';
import { readChainEnds } from './event-sequencer.ts';
import type { PlacedEvent } from './placed-event.ts';

/** Maximum number of events to read before yielding to the event loop. */
const atOnce = 250;

/** Yields pages of the events after position `after`, up to and including `upTo`. */
async function* placedPages({ db }: Pick<Context, 'db'>, after: number, upTo: number): AsyncGenerator<PlacedEvent[]> {
  for (let last = after; last < upTo; ) {
    const rows = await db.all(placedEvents, { after: last, limit: atOnce });
    const events = rows.filter((row) => (row.place as number) <= upTo) as unknown as PlacedEvent[];
    if (events.length === 0) return;
    yield events;
    last = events.at(-1)?.place as number;
    // Yields explicitly, because SQLite queries do not yield to the event loop.
    await nextTurn();
  }
}

const toLine = (event: PlacedEvent): string =>
  `${JSON.stringify({ place: event.place, hash: event.hash, ...toAuditEvent(event) })}\n`;

/**
 * Yields the log as JSON lines in chain order, up to the newest chained event at the time of the call.
 * @throws MusterError invalid_input
 */
export async function exportAudit(context: Context, request: AuditFilter): Promise<AsyncGenerator<string>> {
  const filter = await readFilter(context, request);
  const { head, anchor } = await readChainEnds(context);
  async function* lines() {
    for await (const page of placedPages(context, anchor.place, head.place)) {
      const text = page
        .filter((event) => passes(filter, event))
        .map(toLine)
        .join('');
      if (text !== '') yield text;
    }
  }
  return lines();
}
