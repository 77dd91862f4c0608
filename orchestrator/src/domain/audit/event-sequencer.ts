import { MusterError } from '@muster/protocol';
import { OutcomeUnknown } from '../../store/database.ts';
import { jsonRows } from '../../store/params.ts';
import { chainEnds, moveChainEnd, placeEvents, unplacedEvents } from '../../store/queries/audit.ts';
import type { AuditEventsTable } from '../../store/schema.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';
import { hashOf } from './audit-chain.ts';
import type { EventConsumer, PlacedEvent } from './placed-event.ts';

/**
 * Gives events their places. They are written without one, by whoever changes something, so that no write waits for
 * another; what is committed is found here and chained, many in one unit.
 */

/** Most events of one unit. */
const batch = 1000;
/**
 * Consumers that fail so often in a row get the events of that batch one at a time, and go without those that they fail
 * for: nothing may keep the chain from going on, and no event is to take what follows from others with it.
 */
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
  return { head: of('head'), anchor: of('anchor'), cut: of('cut'), history: of('history').place };
}

export function createSequencer(context: Context, { consumers }: SequencerOptions): Sequencer {
  const { db, bus, log } = context;
  let failures = 0;
  /** Numbers of events that no hash can be told of. */
  const unreadable = new Set<number>();

  /** @param history the number of the last event that was there before anything followed from events */
  const follow = async (placed: readonly Placed[], history: number): Promise<Statement[]> => {
    const events = placed.flatMap(({ seq, event }) => (seq > history ? [event] : []));
    return events.length === 0 ? [] : (await Promise.all(consumers.map((consume) => consume(events)))).flat();
  };

  /** Rows that are not what we write are left without a place, where verification tells of them. */
  const passOver = (row: Row, error: unknown) => {
    if (unreadable.has(row.seq)) return;
    unreadable.add(row.seq);
    log.error({ err: error, seq: row.seq, event_id: row.id }, 'an event cannot be read, and gets no place in the log');
  };

  async function write(fence: Fence, head: Link, placed: readonly Placed[], following: readonly Statement[]) {
    const { place, hash } = (placed.at(-1) as Placed).event;
    const places = placed.map(({ seq, event }) => ({ seq, place: event.place, hash: event.hash }));
    await db.write({
      name: 'audit/place',
      statements: [
        ...fence,
        statement(
          moveChainEnd,
          { name: 'head', from_place: head.place, from_hash: head.hash, place, hash },
          { expect: 'changed', else: 'storage_unavailable', detail: 'the audit chain has grown meanwhile' },
        ),
        statement(placeEvents, { rows: jsonRows(places) }),
        ...following,
      ],
    });
    bus.publish({ type: 'placed', place });
  }

  /** Each in a unit of its own: only what follows from an event that consumers fail for is left out. */
  async function placeSingly(fence: Fence, head: Link, placed: readonly Placed[], history: number) {
    let before = head;
    for (const one of placed) {
      try {
        await write(fence, before, [one], await follow([one], history));
      } catch (error) {
        if (isOfTheDatabase(error)) throw error;
        const { id, place } = one.event;
        log.error({ err: error, event_id: id, place }, 'an event gets its place without what follows from it');
        await write(fence, before, [one], []);
      }
      before = one.event;
    }
  }

  return {
    async place(fence) {
      const rows = await db.all(unplacedEvents, { limit: batch });
      if (rows.length === 0) return false;
      const { head, history } = await readChainEnds(context);
      const placed = chained(head, rows, passOver);
      if (placed.length === 0) return false;
      if (failures >= patience) await placeSingly(fence, head, placed, history);
      else
        try {
          await write(fence, head, placed, await follow(placed, history));
        } catch (error) {
          if (!isOfTheDatabase(error)) failures++;
          throw error;
        }
      failures = 0;
      return rows.length === batch;
    },
  };
}

/** That the database is away, or that another was faster, says nothing about a consumer. */
const isOfTheDatabase = (error: unknown): boolean =>
  error instanceof OutcomeUnknown ||
  (error instanceof MusterError && ['storage_unavailable', 'storage_full', 'draining'].includes(error.code));

type Row = Omit<AuditEventsTable, 'seq'> & { seq: number };
interface Link {
  place: number;
  hash: string;
}
interface Placed {
  readonly seq: number;
  readonly event: PlacedEvent;
}

function chained(head: Link, rows: readonly Row[], passOver: (row: Row, error: unknown) => void): Placed[] {
  let { place, hash } = head;
  return rows.flatMap((row) => {
    const { seq, ...fields } = row;
    try {
      const event = { ...fields, place: place + 1 };
      hash = hashOf(hash, event);
      place++;
      return [{ seq, event: { ...event, hash } }];
    } catch (error) {
      passOver(row, error);
      return [];
    }
  });
}
