import { setImmediate as nextTurn } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import { placedEvents } from '../../store/queries/audit.ts';
import { readChainEnds } from '../audit/event-sequencer.ts';
import type { PlacedEvent } from '../audit/placed-event.ts';
import type { Context } from '../shared/context.ts';
import { allAgents, allOperations, createCrowd } from './event-coalescer.ts';
import {
  eventFrame,
  gapFrame,
  heartbeatFrame,
  type LiveFilter,
  openingFrame,
  type Passing,
  passingOf,
  wants,
  wantsPassing,
} from './live-frames.ts';

/**
 * Streams audit events as they happen. The end of the chain is read once for all followers that are up to date. A
 * follower that reconnects or falls behind catches up with pages of its own, at its own speed, then joins the others. A
 * follower that does not read at all is disconnected.
 */

const pageSize = 250;
/** How often sessions are rechecked, and lost hints are recovered. */
const tickMs = 500;
const heartbeatMs = 15_000;
/** Maximum frames and bytes buffered for a follower. A follower beyond them has fallen behind. */
const maxFrames = 5_000;
const maxBytes = 2 * 1024 * 1024;
/** A follower that reads nothing for this long is disconnected. */
const stalledMs = 30_000;
/** A follower with this many buffered frames gets no passing hints. */
const busyFrames = 500;
const maxFollowers = 1_000;
const maxPerSession = 32;
/** Maximum size of a chunk of frames. */
const pieceBytes = 64 * 1024;

export interface LiveEvents {
  /**
   * Begins a stream.
   * @param wish `after`: the last place that the client saw; null starts at the current end
   * @throws MusterError rate_limited
   */
  follow(wish: LiveWish): Promise<LiveStream>;
  close(): void;
}

export interface LiveWish {
  session: { operator_id: string; token_hash: string };
  filter: LiveFilter;
  after: number | null;
}

export interface LiveStream extends AsyncIterable<string> {
  /** Aborted when the stream is over: the session ended, or the follower stopped reading. */
  readonly ended: AbortSignal;
}

export interface LiveSessions {
  find(tokenHash: string): object | null | Promise<object | null>;
}

interface Follower {
  readonly wish: LiveWish;
  readonly over: AbortController;
  /** The last place that it was sent, or that its filter skipped. */
  place: number;
  /** The last place that it read. */
  taken: number;
  frames: { place: number; text: string }[];
  bytes: number;
  /** Wakes a reader that waits for a frame. */
  wake: (() => void) | null;
  /** A passing hint was dropped for it. */
  missed: boolean;
  /** When it last stopped asking for more; null while it waits for frames. */
  restsSince: number | null;
  heardAt: number;
}

export function createLiveEvents(context: Context, clock: Clock, sessions: LiveSessions): LiveEvents {
  const { db, bus, log } = context;
  /** All followers; `live` are those that are up to date. */
  const followers = new Set<Follower>();
  const live = new Set<Follower>();
  /** The last place that live followers were given; meaningless while there are none. */
  let tail = 0;
  let reading = false;
  let again = false;
  let cancelTick: (() => void) | null = null;
  const crowd = createCrowd();

  const end = (follower: Follower) => {
    followers.delete(follower);
    live.delete(follower);
    follower.frames = [];
    follower.over.abort();
    follower.wake?.();
    if (followers.size === 0) {
      cancelTick?.();
      cancelTick = null;
    }
  };

  const give = (follower: Follower, text: string) => {
    follower.frames.push({ place: follower.place, text });
    follower.bytes += text.length;
    follower.heardAt = clock.monotonic();
    if (follower.frames.length > maxFrames || follower.bytes > maxBytes) {
      live.delete(follower);
      follower.missed = true;
      follower.frames = [];
      follower.bytes = 0;
      follower.place = follower.taken;
    }
    follower.wake?.();
  };

  const spread = (event: PlacedEvent) => {
    let frame: string | null = null;
    for (const follower of live) {
      if (event.place <= follower.place) continue;
      follower.place = event.place;
      if (!wants(follower.wish.filter, event)) continue;
      frame ??= eventFrame(event);
      give(follower, frame);
    }
    tail = event.place;
  };

  /** Reads new events at the end of the chain for all live followers. */
  const look = async () => {
    again = true;
    if (reading) return;
    reading = true;
    try {
      while (again && live.size > 0) {
        again = false;
        for (let more = true; more && live.size > 0; ) {
          const from = tail;
          const rows = (await db.all(placedEvents, { after: from, limit: pageSize })) as unknown as PlacedEvent[];
          // All followers left meanwhile and another one joined: the tail has moved.
          if (from !== tail) {
            again = true;
            break;
          }
          for (const event of rows) spread(event);
          more = rows.length === pageSize;
          await nextTurn();
        }
      }
    } catch (error) {
      log.warn({ err: error }, 'failed to read live events; will retry');
    } finally {
      reading = false;
    }
  };

  const isFree = (follower: Follower) => live.has(follower) && follower.frames.length < busyFrames;

  const tell = (passing: Passing, followers: Iterable<Follower>) => {
    for (const follower of followers) {
      const { filter, session } = follower.wish;
      if (!wantsPassing(filter, passing, session.operator_id)) continue;
      if (isFree(follower)) give(follower, passing.frame);
      else if (passing.onlyOnRequest !== true) follower.missed = true;
    }
  };
  const those = (ofOneAgent: boolean) =>
    [...followers].filter(({ wish }) => (wish.filter.node_id !== undefined) === ofOneAgent);

  /** A follower of one agent gets each hint; the others get one for many changes at once. */
  const pass = (passing: Passing) => {
    tell(passing, those(true));
    const atOnce = crowd.take(passing);
    if (atOnce !== null) tell(atOnce, those(false));
  };

  const tellMissed = (follower: Follower) => {
    if (!follower.missed || !isFree(follower)) return;
    follower.missed = false;
    for (const { category, frame } of [allAgents, allOperations])
      if (follower.wish.filter.categories?.has(category) ?? true) give(follower, frame);
  };

  const checkSession = (follower: Follower) => {
    const judge = (session: object | null) => {
      if (session === null) end(follower);
    };
    const found = sessions.find(follower.wish.session.token_hash);
    if (found instanceof Promise)
      found.then(judge, (error: unknown) => log.warn({ err: error }, 'failed to look up session'));
    else judge(found);
  };

  const tick = () => {
    for (const passing of crowd.turn()) tell(passing, those(false));
    for (const follower of followers) {
      checkSession(follower);
      tellMissed(follower);
      const now = clock.monotonic();
      if (follower.restsSince !== null && now - follower.restsSince >= stalledMs) end(follower);
      else if (live.has(follower) && now - follower.heardAt >= heartbeatMs)
        give(follower, heartbeatFrame(follower.place));
    }
    void look();
    if (followers.size > 0) cancelTick = clock.after(tickMs, tick);
  };

  const unsubscribe = bus.subscribe((hint) => {
    if (followers.size === 0) return;
    if (hint.type === 'placed') {
      if (hint.place > tail) void look();
    } else if (hint.type === 'operator_removed') {
      for (const follower of followers) if (follower.wish.session.operator_id === hint.operator_id) end(follower);
    } else if (hint.type === 'session_ended') {
      for (const follower of followers) if (follower.wish.session.token_hash === hint.token_hash) end(follower);
    } else {
      const passing = passingOf(hint);
      if (passing !== null) pass(passing);
    }
  });

  /** @returns whether the follower is up to date and is live from now on */
  const join = (follower: Follower): boolean => {
    if (live.size === 0) tail = follower.place;
    else if (follower.place < tail) return false;
    live.add(follower);
    void look();
    return true;
  };

  /** Yields text. The time until the follower asks for more counts as stalled. */
  async function* hand(follower: Follower, text: string): AsyncGenerator<string> {
    follower.restsSince = clock.monotonic();
    yield text;
    follower.restsSince = null;
  }

  async function* catchUp(follower: Follower): AsyncGenerator<string> {
    const { over, wish } = follower;
    while (!over.signal.aborted) {
      const rows = (await db.all(placedEvents, { after: follower.place, limit: pageSize })) as unknown as PlacedEvent[];
      if (over.signal.aborted) return;
      const last = rows.at(-1);
      if (last) follower.place = last.place;
      // Missing places below the tail were pruned.
      else if (live.size > 0 && follower.place < tail) follower.place = tail;
      const text = rows
        .filter((event) => wants(wish.filter, event))
        .map(eventFrame)
        .join('');
      if (text !== '') yield* hand(follower, text);
      follower.taken = follower.place;
      if (rows.length < pageSize && join(follower)) return;
      await nextTurn();
    }
  }

  async function* readBy(follower: Follower, opening: string): AsyncGenerator<string> {
    const { over } = follower;
    yield* hand(follower, opening);
    while (!over.signal.aborted) {
      if (!live.has(follower)) yield* catchUp(follower);
      else if (follower.frames.length === 0) {
        await new Promise<void>((wake) => {
          follower.wake = wake;
        });
        follower.wake = null;
      } else {
        let count = 0;
        for (let size = 0; count < follower.frames.length && size < pieceBytes; count++)
          size += (follower.frames[count] as { text: string }).text.length;
        const frames = follower.frames.splice(0, count);
        const piece = frames.map(({ text }) => text).join('');
        follower.bytes -= piece.length;
        follower.taken = frames.at(-1)?.place ?? follower.taken;
        yield* hand(follower, piece);
      }
    }
  }

  return {
    async follow(wish) {
      const { head, anchor } = await readChainEnds(context);
      const mine = [...followers].filter(({ wish: { session } }) => session.token_hash === wish.session.token_hash);
      if (mine.length >= maxPerSession || followers.size >= maxFollowers)
        throw new MusterError('rate_limited', 'too many live streams are open');
      const { after } = wish;
      // A place beyond the head comes from another log, such as one from before a restore from an older backup.
      const reason = after === null ? null : after > head.place ? 'unknown' : after < anchor.place ? 'pruned' : null;
      const place = after === null ? head.place : reason === 'pruned' ? anchor.place : Math.min(after, head.place);
      const gap = after === null || reason === null ? '' : gapFrame({ after, next: place + 1, reason });
      const follower: Follower = {
        wish,
        over: new AbortController(),
        place,
        taken: place,
        frames: [],
        bytes: 0,
        wake: null,
        missed: false,
        restsSince: null,
        heardAt: clock.monotonic(),
      };
      followers.add(follower);
      cancelTick ??= clock.after(tickMs, tick);
      const source = readBy(follower, `${openingFrame(place)}${gap}`);
      return {
        ended: follower.over.signal,
        [Symbol.asyncIterator]: () => ({
          next: () => source.next(),
          // The source may be waiting for a frame, so that wait has to end first.
          return: () => {
            end(follower);
            return source.return(undefined);
          },
        }),
      };
    },
    close() {
      unsubscribe();
      for (const follower of [...followers]) end(follower);
    },
  };
}
