import { MusterError } from '@muster/protocol';
import { jsonRows } from '../../store/params.ts';
import { chainEnds, moveChainEnd, placeEvents, unplacedEvents } from '../../store/queries/audit.ts';
import type { AuditEventsTable } from '../../store/schema.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';
import { hashOf } from './audit-chain.ts';
import type { EventConsumer, PlacedEvent } from './placed-event.ts';

/**
 * Assigns events their positions in the chain. Writers record events without a position, so that writes do not wait
 * for each other. The sequencer adds committed events to the chain, many in one transaction.
 */

/** Maximum number of events in one transaction. */
const batch = 1000;
/**
 * Number of consecutive consumer failures after which the events in the batch are placed one at a time, without the
 * consumers that fail for an event. As a result, a failing consumer does not stop the chain, and a failing event does
 * not affect others.
 */
const maxFailures = 5;

export interface SequencerOptions {
  /** Consumers whose statements join the transaction. */
  consumers: readonly EventConsumer[];
}

export interface Sequencer {
  /**
   * Adds one batch of events to the chain.
   * @returns whether more events may be waiting
   */
  place(fence: Fence): Promise<boolean>;
}

/** Returns the first and last link of the chain. */
export async function readChainEnds({ db }: Pick<Context, 'db'>) {
  const ends = await db.all(chainEnds, {});
  const of = (endName: (typeof ends)[number]['name']) => {
    const found = ends.find(({ name }) => name === endName);
    if (!found) throw new Error(`the ${endName} of the audit chain is missing from the database`);
    return { place: found.place, hash: found.hash };
  };
  return { head: of('head'), anchor: of('anchor'), cut: of('cut'), history: of('history').place };
}

export function createSequencer(context: Context, { consumers }: SequencerOptions): Sequencer {
  const { db, bus, log } = context;
  let failures = 0;
  /** Sequence numbers of events that cannot be hashed. */
  const unreadable = new Set<number>();

  /**
   * Returns the consumers' statements.
   * @param history number of the last event before the first release with consumers
   */
  const follow = async (placed: readonly Placed[], history: number): Promise<Statement[]> => {
    const events = placed.flatMap(({ seq, event }) => (seq > history ? [event] : []));
    return events.length === 0 ? [] : (await Promise.all(consumers.map((consume) => consume(events)))).flat();
  };

  /** Skips a row in an unknown format. The row is not added to the chain, and verification reports it. */
  const passOver = (row: Row, error: unknown) => {
    if (unreadable.has(row.seq)) return;
    unreadable.add(row.seq);
    log.error(
      { err: error, seq: row.seq, event_id: row.id },
      'failed to read audit event; leaving it out of the chain',
    );
  };

  async function write(fence: Fence, head: Link, placed: readonly Placed[], following: readonly Statement[]) {
    const { place, hash } = (placed.at(-1) as Placed).event;
    const positions = placed.map(({ seq, event }) => ({ seq, place: event.place, hash: event.hash }));
    await db.write({
      name: 'audit/place',
      statements: [
        ...fence,
        statement(
          moveChainEnd,
          { name: 'head', from_place: head.place, from_hash: head.hash, place, hash },
          { expect: 'changed', else: 'storage_unavailable', detail: 'another process has extended the audit chain' },
        ),
        statement(placeEvents, { rows: jsonRows(positions) }),
        ...following,
      ],
    });
    bus.publish({ type: 'placed', place });
  }

  /** Places each event in its own transaction. If the consumers fail for an event, only its own statements are lost. */
  async function placeSingly(fence: Fence, head: Link, placed: readonly Placed[], history: number) {
    let before = head;
    for (const one of placed) {
      try {
        await write(fence, before, [one], await follow([one], history));
      } catch (error) {
        if (isOfTheDatabase(error)) throw error;
        const { id, place } = one.event;
        log.error(
          { err: error, event_id: id, place },
          'failed to process audit event; adding it to the chain without notifications',
        );
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
      if (failures >= maxFailures) await placeSingly(fence, head, placed, history);
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

/** Reports whether an error is caused by the database or a concurrent writer rather than by a consumer. */
const isOfTheDatabase = (error: unknown): boolean =>
  error instanceof MusterError &&
  ['storage_unavailable', 'storage_full', 'draining', 'outcome_unknown'].includes(error.code);

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
