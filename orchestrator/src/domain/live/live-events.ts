import { setImmediate as nextTurn } from 'node:timers/promises';
import { MusterError } from '@muster/protocol';
import type { Clock } from '../../clock.ts';
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
 * Events as they happen. The end of the chain is read once for all who follow it. Whoever comes back first catches up, in
 * pages of their own and as fast as they read, and then joins the others; so does whoever falls behind. Who does not read
 * at all is cut off.
 */

const pageSize = 250;
/** So often it is looked whether sessions still live, and for what no hint told of. */
const tickMs = 500;
const heartbeatMs = 15_000;
/** What is kept for one follower to read. Beyond that it has fallen behind. */
const mostFrames = 5_000;
const mostBytes = 2 * 1024 * 1024;
/** Who takes nothing for so long is gone. */
const stalledMs = 30_000;
/** What passes is left out for one who has so much to read already. */
const busyFrames = 500;
const mostFollowers = 1_000;
const mostPerSession = 32;
/** Frames that are handed on together. */
const pieceBytes = 64 * 1024;

export interface LiveEvents {
  /**
   * Begins a stream.
   * @param wish `after`: the place that the client saw last; null: from now on
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
  /** Aborted when the stream is over: the session ended, or nobody reads it. */
  readonly ended: AbortSignal;
}

export interface LiveSessions {
  find(tokenHash: string): object | null | Promise<object | null>;
}

interface Follower {
  readonly wish: LiveWish;
  readonly over: AbortController;
  /** The last place that it was given, or that was not for it. */
  place: number;
  /** The last place that it took. */
  taken: number;
  frames: { place: number; text: string }[];
  bytes: number;
  /** Waits for a frame. */
  wake: (() => void) | null;
  /** Something passed that it was not told of. */
  missed: boolean;
  /** Since when it has not asked for more; null while it does. */
  restsSince: number | null;
  heardAt: number;
}

export function createLiveEvents(context: Context, clock: Clock, sessions: LiveSessions): LiveEvents {
  const { db, bus, log } = context;
  /** All who have a stream, and among them those who have caught up. */
  const followers = new Set<Follower>();
  const live = new Set<Follower>();
  /** What those were given; meaningless while there are none. */
  let tail = 0;
  let reading = false;
  let again = false;
  let callOff: (() => void) | null = null;
  const crowd = createCrowd();

  const end = (follower: Follower) => {
    followers.delete(follower);
    live.delete(follower);
    follower.frames = [];
    follower.over.abort();
    follower.wake?.();
    if (followers.size === 0) {
      callOff?.();
      callOff = null;
    }
  };

  const give = (follower: Follower, text: string) => {
    follower.frames.push({ place: follower.place, text });
    follower.bytes += text.length;
    follower.heardAt = clock.monotonic();
    if (follower.frames.length > mostFrames || follower.bytes > mostBytes) {
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

  /** Reads what is new at the end of the chain, for all who follow it. */
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
          // Everybody left meanwhile, and somebody else came: the end is elsewhere now.
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
      log.warn({ err: error }, 'live events could not be read; it is tried again');
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

  /** Whoever follows one agent is told each change of it; the others are told of many at once as one. */
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
      found.then(judge, (error: unknown) => log.warn({ err: error }, 'a session could not be looked up'));
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
    if (followers.size > 0) callOff = clock.after(tickMs, tick);
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

  /** @returns whether the follower has caught up, and gets from now on what the others get */
  const join = (follower: Follower): boolean => {
    if (live.size === 0) tail = follower.place;
    else if (follower.place < tail) return false;
    live.add(follower);
    void look();
    return true;
  };

  /** Hands text on. The time until the follower asks for more is its own. */
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
      // What is not there although others have come further was removed.
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
      if (mine.length >= mostPerSession || followers.size >= mostFollowers)
        throw new MusterError('rate_limited', 'too many live streams are open');
      const { after } = wish;
      // A place that is still to come is one of another log: this one was restored from an older copy.
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
      callOff ??= clock.after(tickMs, tick);
      const source = readBy(follower, `${openingFrame(place)}${gap}`);
      return {
        ended: follower.over.signal,
        [Symbol.asyncIterator]: () => ({
          next: () => source.next(),
          // It may be waiting for a frame: that wait ends first.
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
