import { MusterError } from '@muster/protocol';
import { chainEnds, moveChainEnd, placeEvents, unplacedEvents } from '../store/audit.ts';
import { OutcomeUnknown } from '../store/database.ts';
import { jsonRows } from '../store/params.ts';
import type { AuditEventsTable } from '../store/schema.ts';
import { type Statement, statement } from '../store/unit.ts';
import { hashOf } from './audit-chain.ts';
import type { Context } from './context.ts';
import type { EventConsumer, PlacedEvent } from './event-consumer.ts';
import type { Fence } from './leases.ts';

/**
 * Gives events their places. They are written without one, by whoever changes something, so that no write waits for
 * another; what is committed is found here and chained, many in one unit.
 */

/** Most events of one unit. */
const batch = 1000;
/** A consumer that fails so often in a row is left out, so that it cannot keep the chain from going on. */
const patience = 5;

export interface SequencerOptions {
  /** What follows from events, in the same unit. */
  consumers: readonly EventConsumer[];
}

export interface Sequencer {
  /** Places one batch. @returns whether there may be more */
  place(fence: Fence): Promise<boolean>;
}

/** The ends of the chain as they are now. */
export async function readChainEnds({ db }: Pick<Context, 'db'>) {
  const ends = await db.all(chainEnds, {});
  const of = (wanted: (typeof ends)[number]['name']) => {
    const found = ends.find(({ name }) => name === wanted);
    if (!found) throw new Error(`the ${wanted} of the audit chain is gone from the database`);
    return { place: found.place, hash: found.hash };
  };
  return { head: of('head'), anchor: of('anchor'), cut: of('cut') };
}

export function createSequencer(context: Context, { consumers }: SequencerOptions): Sequencer {
  const { db, bus, log } = context;
  let failures = 0;

  const following = async (events: readonly PlacedEvent[]): Promise<Statement[]> => {
    if (failures < patience) return (await Promise.all(consumers.map((consume) => consume(events)))).flat();
    const span = { first: events[0]?.place, last: events.at(-1)?.place };
    log.error(span, 'events get their places without what follows from them: that has failed too often');
    return [];
  };

  return {
    async place(fence) {
      const rows = await db.all(unplacedEvents, { limit: batch });
      if (rows.length === 0) return false;
      const { head } = await readChainEnds(context);
      const events = chained(head, rows);
      const last = events.at(-1) as PlacedEvent;
      const places = rows.map(({ seq }, at) => ({ seq, place: events[at]!.place, hash: events[at]!.hash }));
      try {
        await db.write({
          name: 'audit/place',
          statements: [
            ...fence,
            statement(
              moveChainEnd,
              { name: 'head', from_place: head.place, from_hash: head.hash, place: last.place, hash: last.hash },
              { expect: 'changed', else: 'storage_unavailable', detail: 'the audit chain has grown meanwhile' },
            ),
            statement(placeEvents, { rows: jsonRows(places) }),
            ...(await following(events)),
          ],
        });
      } catch (error) {
        if (!isOfTheDatabase(error)) failures++;
        throw error;
      }
      failures = 0;
      bus.publish({ type: 'placed', place: last.place });
      return rows.length === batch;
    },
  };
}

/** That the database is away, or that another was faster, says nothing about a consumer. */
const isOfTheDatabase = (error: unknown): boolean =>
  error instanceof OutcomeUnknown ||
  (error instanceof MusterError && ['storage_unavailable', 'storage_full', 'draining'].includes(error.code));

function chained(
  head: { place: number; hash: string },
  rows: readonly (Omit<AuditEventsTable, 'seq'> & { seq: number })[],
): PlacedEvent[] {
  let { place, hash } = head;
  return rows.map(({ seq: _, ...row }) => {
    const event = { ...row, place: ++place };
    hash = hashOf(hash, event);
    return { ...event, hash };
  });
}
