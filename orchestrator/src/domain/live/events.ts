import { MusterError } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import { readChainEnds } from '../audit/event-sequencer.ts';
import type { Context } from '../shared/context.ts';
import { allAgents, allOperations, createCrowd } from './event-coalescer.ts';
import { Follower, type LiveRequest } from './live-follower.ts';
import {
  gapFrame,
  heartbeatFrame,
  openingFrame,
  type Passing,
  passing,
  passingOf,
  wantsPassing,
} from './live-frames.ts';
import { readStream } from './live-stream.ts';
import { LiveTail } from './live-tail.ts';

/**
 * Streams audit events as they occur. Followers that are up to date share one read of the newest events in the chain. A
 * follower that reconnects or falls behind reads separate pages at its own speed until it is up to date. A follower
 * that stops reading is disconnected.
 */

/** Milliseconds between rechecks of sign-in sessions. Lost hints are recovered at the same interval. */
const tickMs = 500;
const heartbeatMs = 15_000;
/** Milliseconds without reading after which a follower is disconnected. */
const stalledMs = 30_000;
const maxFollowers = 1_000;
const maxPerSession = 32;

/** Frames that replace dropped changes: they make a follower reload everything. */
const everything = [
  ...[allAgents, allOperations, passing('run', 'run', undefined, { run_id: null })],
  passing('window', 'window', undefined, {}),
  passing('notification', 'notification', undefined, {}),
];

export interface LiveEvents {
  /**
   * Begins a stream.
   * @param request `after`: position of the last event that the client received; null to start after the newest event
   * @throws MusterError rate_limited
   */
  follow(request: LiveRequest): Promise<LiveStream>;
  close(): void;
}

export interface LiveStream extends AsyncIterable<string> {
  /** Aborted when the stream ends because the sign-in session ended or the follower stopped reading. */
  readonly ended: AbortSignal;
}

export interface LiveSessions {
  find(tokenHash: string): object | null | Promise<object | null>;
}

export function createLiveEvents(context: Context, clock: Clock, sessions: LiveSessions): LiveEvents {
  const { bus, log } = context;
  const followers = new Set<Follower>();
  const tail = new LiveTail(context, () => clock.monotonic());
  let cancelTick: (() => void) | null = null;
  const crowd = createCrowd();

  const end = (follower: Follower) => {
    followers.delete(follower);
    tail.leave(follower);
    follower.end();
    if (followers.size === 0) {
      cancelTick?.();
      cancelTick = null;
    }
  };

  const isFree = (follower: Follower) => tail.has(follower) && follower.isFree;

  const send = (passing: Passing, followers: Iterable<Follower>) => {
    for (const follower of followers) {
      const { filter, session } = follower.request;
      if (!wantsPassing(filter, passing, session.operator_id)) continue;
      if (isFree(follower)) tail.give(follower, passing.frame);
      else if (passing.onlyOnRequest !== true) follower.missed = true;
    }
  };
  const those = (ofOneAgent: boolean) =>
    [...followers].filter(({ request }) => (request.filter.node_id !== undefined) === ofOneAgent);

  /** Forwards a change. Followers of one agent get every change; other followers get one combined change for many. */
  const forward = (passing: Passing) => {
    send(passing, those(true));
    const atOnce = crowd.take(passing);
    if (atOnce !== null) send(atOnce, those(false));
  };

  const sendMissed = (follower: Follower) => {
    if (!follower.missed || !isFree(follower)) return;
    follower.missed = false;
    for (const { category, frame } of everything)
      if (follower.request.filter.categories?.has(category) ?? true) tail.give(follower, frame);
  };

  const checkSession = (follower: Follower) => {
    const endIfNull = (session: object | null) => {
      if (session === null) end(follower);
    };
    const found = sessions.find(follower.request.session.token_hash);
    if (found instanceof Promise)
      found.then(endIfNull, (error: unknown) => log.warn({ err: error }, 'failed to look up sign-in session'));
    else endIfNull(found);
  };

  const tick = () => {
    for (const passing of crowd.turn()) send(passing, those(false));
    for (const follower of followers) {
      checkSession(follower);
      sendMissed(follower);
      const now = clock.monotonic();
      if (follower.restsSince !== null && now - follower.restsSince >= stalledMs) end(follower);
      else if (tail.has(follower) && now - follower.lastSentAt >= heartbeatMs)
        tail.give(follower, heartbeatFrame(follower.place));
    }
    void tail.read();
    if (followers.size > 0) cancelTick = clock.after(tickMs, tick);
  };

  const endWhere = (which: (session: LiveRequest['session']) => boolean) => {
    for (const follower of followers) if (which(follower.request.session)) end(follower);
  };
  const unsubscribe = bus.subscribe((hint) => {
    if (followers.size === 0) return;
    if (hint.type === 'placed') tail.chainGrew(hint.place);
    else if (hint.type === 'hints_lost') for (const follower of followers) follower.missed = true;
    else if (hint.type === 'operator_removed') endWhere(({ operator_id }) => operator_id === hint.operator_id);
    else if (hint.type === 'session_ended') endWhere(({ token_hash }) => token_hash === hint.token_hash);
    else {
      const passing = passingOf(hint);
      if (passing !== null) forward(passing);
    }
  });

  return {
    async follow(request) {
      const ends = await readChainEnds(context);
      requireCapacity(followers, request);
      const { place, opening } = beginningOf(request.after, { head: ends.head.place, anchor: ends.anchor.place });
      const follower = new Follower(request, place, clock.monotonic());
      followers.add(follower);
      cancelTick ??= clock.after(tickMs, tick);
      return streamOf(readStream(context, clock, tail, follower, opening), follower, () => end(follower));
    },
    close() {
      unsubscribe();
      for (const follower of [...followers]) end(follower);
    },
  };
}

/**
 * Checks the limits on open streams.
 * @throws MusterError rate_limited
 */
function requireCapacity(followers: ReadonlySet<Follower>, { session }: LiveRequest): void {
  const mine = [...followers].filter(({ request }) => request.session.token_hash === session.token_hash);
  if (mine.length >= maxPerSession || followers.size >= maxFollowers)
    throw new MusterError('rate_limited', 'too many live streams are open');
}

/**
 * Determines where a stream starts.
 * @param after position of the last event that the client received; null to start after the newest event
 * @param chain the positions of the newest event (`head`) and of the newest pruned event (`anchor`)
 * @returns the position after which the stream begins, and its first frames
 */
function beginningOf(after: number | null, { head, anchor }: { head: number; anchor: number }) {
  if (after === null) return { place: head, opening: openingFrame(head) };
  // A position beyond the head comes from another log, for example from before an older backup was restored.
  const reason = after > head ? 'unknown' : after < anchor ? 'pruned' : null;
  const position = reason === 'pruned' ? anchor : Math.min(after, head);
  const gap = reason === null ? '' : gapFrame({ after, next: position + 1, reason });
  return { place: position, opening: `${openingFrame(position)}${gap}` };
}

const streamOf = (source: AsyncGenerator<string>, follower: Follower, end: () => void): LiveStream => ({
  ended: follower.ended,
  [Symbol.asyncIterator]: () => ({
    next: () => source.next(),
    // Stops the stream first. The source may be waiting for a frame, and `return` takes effect only after that wait.
    return: () => {
      end();
      return source.return(undefined);
    },
  }),
});
