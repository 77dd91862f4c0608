import { setImmediate as nextTurn } from 'node:timers/promises';
import { chainRows, countUnplaced, firstPlaced } from '../../store/queries/audit.ts';
import type { Context } from '../shared/context.ts';
import { categoryOf, hashOf } from './audit-chain.ts';
import { readChainEnds } from './event-sequencer.ts';
import type { PlacedEvent } from './placed-event.ts';

/** Verifies the audit log: recomputes every hash from the oldest event to the newest. */

export interface Link {
  place: number;
  hash: string;
}

export interface Verdict {
  ok: boolean;
  /** Number of valid events before the first error. */
  verified: number;
  /** The newest event that pruning removed. The chain begins after it. */
  anchor: Link;
  /** The newest event in the chain. */
  head: Link;
  /** Number of events that are not yet in the chain. */
  unchained: number;
  /** The first invalid position; null if the chain is valid. */
  fault: { place: number; event_id: string | null; message: string } | null;
}

const atOnce = 250;

/** Returns the error in the event after `before`; null if the event is valid. */
function faultOf(before: Link, event: PlacedEvent): string | null {
  if (event.place === before.place) return 'a second event has this position';
  if (event.place !== before.place + 1) return 'the event at this position is missing';
  if (event.category !== categoryOf(event.event_type)) return 'the category does not match the event type';
  try {
    if (hashOf(before.hash, event) === event.hash) return null;
  } catch {
    return 'the event has an invalid format';
  }
  return 'the hash does not match the event and the previous hash';
}

type Reached = Link & { seq: number };
const behind = (anchor: Link): Reached => ({ ...anchor, seq: Number.MAX_SAFE_INTEGER });

async function verify(context: Context, signal: AbortSignal): Promise<Verdict> {
  const { db } = context;
  let start: Link = { place: 0, hash: '' };
  let last: Reached = behind(start);
  let verified = 0;
  const verdict = async (fault: Verdict['fault']): Promise<Verdict> => {
    const { head } = await readChainEnds(context);
    const unchained = (await db.get(countUnplaced, {}))?.count ?? 0;
    return { ok: fault === null, verified, anchor: start, head, unchained, fault };
  };
  /** Restarts at the current anchor. */
  const begin = async (): Promise<Verdict['fault']> => {
    const { anchor } = await readChainEnds(context);
    start = anchor;
    last = behind(anchor);
    // Reads the anchor first, because pruning removes events and moves the anchor in one transaction.
    const first = await db.get(firstPlaced, {});
    if (!first || (first.place as number) > anchor.place) return null;
    return {
      place: first.place as number,
      event_id: first.id,
      message: 'the position is before the start of the chain',
    };
  };
  const early = await begin();
  if (early) return verdict(early);
  for (;;) {
    signal.throwIfAborted();
    const rows = (await db.all(chainRows, { place: last.place, seq: last.seq, limit: atOnce })) as (PlacedEvent & {
      seq: number;
    })[];
    for (const event of rows) {
      const message = faultOf(last, event);
      if (message === null) {
        last = { place: event.place, hash: event.hash, seq: event.seq };
        verified++;
        continue;
      }
      // Pruning may have removed events during this read, in which case the chain begins after the expected position,
      // possibly after this event.
      if (event.place > last.place + 1 && (await readChainEnds(context)).anchor.place > last.place) {
        const before = await begin();
        if (before) return verdict(before);
        break;
      }
      const place = Math.min(event.place, last.place + 1);
      return verdict({ place, event_id: event.place === place ? event.id : null, message });
    }
    if (rows.length > 0) {
      await nextTurn();
      continue;
    }
    // Reads the head after the events, so that the head is at least as new as the last event.
    const { head, anchor: now } = await readChainEnds(context);
    if (head.place === last.place)
      return verdict(
        head.hash === last.hash
          ? null
          : {
              place: last.place,
              event_id: null,
              message: 'the hash differs from the recorded hash of the newest event',
            },
      );
    if (head.place < last.place) {
      const message = 'the position is after the recorded end of the chain';
      return verdict({ place: head.place + 1, event_id: null, message });
    }
    if (now.place > last.place) {
      const before = await begin();
      if (before) return verdict(before);
      continue;
    }
    const [next] = await db.all(chainRows, { place: last.place, seq: last.seq, limit: 1 });
    if (next) continue;
    return verdict({ place: last.place + 1, event_id: null, message: 'the event at this position is missing' });
  }
}

export interface Verifier {
  /**
   * Verifies the log as it is now or later.
   * @param signal aborts when the caller stops waiting
   */
  verify(signal: AbortSignal): Promise<Verdict>;
}

/**
 * Creates a verifier that runs one verification at a time, because each verification reads the whole log. Callers
 * during a verification share the next verification.
 */
export function createVerifier(context: Context): Verifier {
  let running: Promise<unknown> = Promise.resolve();
  let next: { verdict: Promise<Verdict>; waiting: number; abort: AbortController } | null = null;

  return {
    async verify(signal) {
      if (next === null) {
        const abort = new AbortController();
        const verdict = running
          .catch(() => {})
          .then(() => {
            next = null;
            return verify(context, abort.signal);
          });
        next = { verdict, waiting: 0, abort };
        running = verdict;
      }
      const mine = next;
      mine.waiting++;
      const leave = () => {
        if (--mine.waiting === 0) mine.abort.abort();
      };
      signal.addEventListener('abort', leave, { once: true });
      try {
        if (signal.aborted) leave();
        return await mine.verdict;
      } finally {
        signal.removeEventListener('abort', leave);
      }
    },
  };
}
