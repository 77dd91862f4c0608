import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Context } from '../shared/context.ts';
import type { Follower } from './live-follower.ts';
import { eventFrame, wants } from './live-frames.ts';
import { type LiveTail, pageSize, readPlaced } from './live-tail.ts';

/** Yields a follower's frames: first the missed events, read in separate pages, then the live events. */
export async function* readStream(
  context: Context,
  clock: Clock,
  tail: LiveTail,
  follower: Follower,
  opening: string,
): AsyncGenerator<string> {
  yield* yieldText(clock, follower, opening);
  while (!follower.ended.aborted) {
    if (!tail.has(follower)) yield* catchUp(context, clock, tail, follower);
    else if (follower.isEmpty) await follower.arrival();
    else yield* yieldText(clock, follower, follower.take());
  }
}

/** Yields text. The follower counts as stalled until the client reads again. */
async function* yieldText(clock: Clock, follower: Follower, text: string): AsyncGenerator<string> {
  follower.restsSince = clock.monotonic();
  yield text;
  follower.restsSince = null;
}

async function* catchUp(context: Context, clock: Clock, tail: LiveTail, follower: Follower): AsyncGenerator<string> {
  while (!follower.ended.aborted) {
    const rows = await readPlaced(context, follower.place);
    if (follower.ended.aborted) return;
    const last = rows.at(-1);
    if (last) follower.place = last.place;
    // The events between the last row and the tail were pruned.
    else follower.place = Math.max(follower.place, tail.place ?? follower.place);
    const text = rows
      .filter((event) => wants(follower.request.filter, event))
      .map(eventFrame)
      .join('');
    if (text !== '') yield* yieldText(clock, follower, text);
    follower.taken = follower.place;
    if (rows.length < pageSize && tail.join(follower)) return;
    await nextTurn();
  }
}
