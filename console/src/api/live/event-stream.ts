import { followEvents } from '@muster/protocol/http';
import { call, delayReadsUntil, session } from '../client.ts';
import { markStale, queryClient } from '../query-client.ts';
import { createFrames } from './event-frames.ts';
import { categories, type LiveMessage, messageOf, staleAfter } from './stale.ts';
import { createStaleness } from './staleness.ts';

/**
 * The one stream of events of this tab. What it tells makes answers stale, which are asked for again in batches; views
 * that want every event listen to it.
 */

export type LiveState = 'closed' | 'connecting' | 'live' | 'lost';

let state: LiveState = 'closed';
const stateListeners = new Set<() => void>();
const messageListeners = new Set<(message: LiveMessage) => void>();
const staleness = createStaleness({
  mark: markStale,
  now: () => performance.now(),
  after: (ms, act) => {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
});

function become(next: LiveState): void {
  if (next === state) return;
  state = next;
  for (const listener of stateListeners) listener();
}

function spread(message: LiveMessage): void {
  for (const key of staleAfter(message)) staleness.add(key);
  for (const listener of messageListeners) listener(message);
}

/** Hears every message until it is called off. */
export function onLiveMessage(listener: (message: LiveMessage) => void): () => void {
  messageListeners.add(listener);
  return () => messageListeners.delete(listener);
}

export const liveState = (): LiveState => state;

/** Calls back when that changes, until it is called off. */
export function onLiveState(listener: () => void): () => void {
  stateListeners.add(listener);
  return () => stateListeners.delete(listener);
}

/** Milliseconds: the orchestrator says something at least every 15 s, so a stream this quiet is a dead one. */
const quietMs = 40_000;
const firstWaitMs = 500;
const longestWaitMs = 5_000;
/** A stream that lived for so long and then ended was ended for a reason, such as a new token: the next is there at once. */
const soundMs = 10_000;
/** Reading waits for the stream to begin, since what is read after that misses nothing; but no longer than this. */
const openingMs = 2_500;

let running: AbortController | null = null;

/** Follows while somebody is signed in. Safe to call again. */
export function startLive(): void {
  session.subscribe(() => {
    if (session.state().status === 'live') begin();
    else end();
  });
}

function begin(): void {
  if (running !== null) return;
  running = new AbortController();
  const { signal } = running;
  const opening = Promise.withResolvers<void>();
  let late = false;
  const readAnyway = () => {
    late = true;
    opening.resolve();
  };
  const alarm = window.setTimeout(readAnyway, openingMs);
  signal.addEventListener('abort', readAnyway);
  delayReadsUntil(opening.promise);
  const onOpen = () => {
    window.clearTimeout(alarm);
    opening.resolve();
    // Hints have no place and are not told again: what is known from before may have changed meanwhile.
    if (late || isAnythingKnown()) spread({ kind: 'gap' });
    late = true;
    become('live');
  };
  void follow(signal, onOpen, readAnyway);
}

const isAnythingKnown = (): boolean =>
  queryClient
    .getQueryCache()
    .getAll()
    .some(({ state: { dataUpdatedAt, errorUpdatedAt } }) => dataUpdatedAt > 0 || errorUpdatedAt > 0);

function end(): void {
  running?.abort();
  running = null;
  staleness.clear();
  become('closed');
}

/** @param onOpen is told whenever a stream begins to flow; `onFailure`, when none could be had or it broke */
async function follow(signal: AbortSignal, onOpen: () => void, onFailure: () => void): Promise<void> {
  let place: string | null = null;
  let wait = firstWaitMs;
  become('connecting');
  while (!signal.aborted) {
    const quiet = new AbortController();
    let alarm = window.setTimeout(() => quiet.abort(), quietMs);
    let openedAt: number | null = null;
    let ended = false;
    try {
      const stream = await call(followEvents, {
        query: { category: categories, ...(place === null ? {} : { last_event_id: place }) },
        signal: AbortSignal.any([signal, quiet.signal]),
      });
      const frames = createFrames((event, data) => {
        const message = messageOf(event, data);
        if (message !== null) spread(message);
      }, place);
      for await (const piece of stream.body) {
        window.clearTimeout(alarm);
        alarm = window.setTimeout(() => quiet.abort(), quietMs);
        if (openedAt === null) {
          openedAt = performance.now();
          onOpen();
        }
        frames.feed(piece);
        place = frames.place();
      }
      ended = true;
    } catch {
      // Whatever it was: tried again below, and a session that ended is waited for there.
    } finally {
      window.clearTimeout(alarm);
    }
    if (signal.aborted) return;
    const wasSound = openedAt !== null && performance.now() - openedAt >= soundMs;
    if (wasSound) wait = firstWaitMs;
    if (wasSound && ended) continue;
    onFailure();
    become('lost');
    await passed(wait * (0.5 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, longestWaitMs);
  }
}

/** Ends early when it is aborted. */
const passed = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = () => {
      window.clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = window.setTimeout(over, ms);
    signal.addEventListener('abort', over);
  });
