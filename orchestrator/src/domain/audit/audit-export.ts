import { setImmediate as nextTurn } from 'node:timers/promises';
import { placedEvents } from '../../store/queries/audit.ts';
import type { Context } from '../shared/context.ts';
import { toAuditEvent } from './audit-chain.ts';
import { type AuditFilter, passes, readFilter } from './audit-filter.ts';
import { readChainEnds } from './event-sequencer.ts';
import type { PlacedEvent } from './placed-event.ts';

/** Read at one time: other work goes on in between. */
const atOnce = 250;

/** Events that have a place, in pages: those after one place, up to another. */
async function* placedPages({ db }: Pick<Context, 'db'>, after: number, upTo: number): AsyncGenerator<PlacedEvent[]> {
  for (let last = after; last < upTo; ) {
    const rows = await db.all(placedEvents, { after: last, limit: atOnce });
    const events = rows.filter((row) => (row.place as number) <= upTo) as unknown as PlacedEvent[];
    if (events.length === 0) return;
    yield events;
    last = events.at(-1)?.place as number;
    // A read of the embedded database takes no turn of the loop by itself.
    await nextTurn();
  }
}

/** An event with its place and hash, as an auditor needs it; one line. */
const toLine = (event: PlacedEvent): string =>
  `${JSON.stringify({ place: event.place, hash: event.hash, ...toAuditEvent(event) })}\n`;

/**
 * The log as JSON lines, in the order of the chain, up to where it reached when this was asked.
 * @throws MusterError invalid_input
 */
export async function exportAudit(context: Context, asked: AuditFilter): Promise<AsyncGenerator<string>> {
  const filter = await readFilter(context, asked);
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
