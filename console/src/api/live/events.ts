import { followEvents } from '@muster/protocol/http';
import { EventFrameReader } from '../../../../client/src/event-frames.ts';
import { call, delayReadsUntil, session } from '../client.ts';
import { markStale, queryClient } from '../query-client.ts';
import { categories, type LiveMessage, messageOf, outdatedKeysAfter } from './outdated-keys.ts';
import { hasAnswers } from './query-invalidation.ts';
import { sleep } from './sleep.ts';
import { createStaleness } from './staleness.ts';

/** The event stream of this browser tab. Its messages mark cached queries as stale and are passed to listeners. */

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

function dispatch(message: LiveMessage): void {
  for (const key of outdatedKeysAfter(message)) staleness.add(key);
  for (const listener of messageListeners) listener(message);
}

/**
 * Subscribes to all messages.
 * @returns a function that unsubscribes
 */
export function onLiveMessage(listener: (message: LiveMessage) => void): () => void {
  messageListeners.add(listener);
  return () => messageListeners.delete(listener);
}

export const liveState = (): LiveState => state;

/**
 * Subscribes to connection state changes.
 * @returns a function that unsubscribes
 */
export function onLiveState(listener: () => void): () => void {
  stateListeners.add(listener);
  return () => stateListeners.delete(listener);
}

/** The orchestrator sends data at least every 15 s, so a stream that is silent for this long is dead. */
const quietMs = 40_000;
const minBackoffMs = 500;
const maxBackoffMs = 5_000;
/**
 * If a stream was open for longer than this time, it was closed for an expected reason, such as a token renewal, and is
 * opened again without delay.
 */
const stableMs = 10_000;
/** Maximum time for which reads wait until the stream is open. */
const maxReadDelayMs = 2_500;

let running: AbortController | null = null;

/** Time after which a hidden tab closes its stream. */
const hiddenMs = 5_000;

/**
 * Connects to the stream while an operator is signed in and the tab is visible. A browser opens only a few connections
 * to a server (six over HTTP/1.1), so streams in many hidden tabs would delay all requests.
 */
export function startLive(): void {
  let alarm: number | undefined;
  const update = () => {
    window.clearTimeout(alarm);
    if (session.state().status !== 'live') end();
    else if (!document.hidden) begin();
    else if (running !== null) alarm = window.setTimeout(end, hiddenMs);
  };
  session.subscribe(update);
  document.addEventListener('visibilitychange', update);
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
  const alarm = window.setTimeout(readAnyway, maxReadDelayMs);
  signal.addEventListener('abort', readAnyway);
  delayReadsUntil(opening.promise);
  const onOpen = () => {
    window.clearTimeout(alarm);
    opening.resolve();
    // Hints have no id and are not replayed, so cached data may be outdated.
    if (late || hasAnswers(queryClient)) dispatch({ kind: 'gap' });
    late = true;
    become('live');
  };
  void follow(signal, onOpen, readAnyway);
}

function end(): void {
  running?.abort();
  running = null;
  staleness.clear();
  become('closed');
}

/**
 * Reads the stream and reconnects until aborted.
 * @param onOpen called when the first data of a connection arrives
 * @param onFailure called when a connection fails or breaks
 */
async function follow(signal: AbortSignal, onOpen: () => void, onFailure: () => void): Promise<void> {
  let position: string | null = null;
  let backoff = minBackoffMs;
  become('connecting');
  while (!signal.aborted) {
    const quiet = new AbortController();
    let alarm = window.setTimeout(() => quiet.abort(), quietMs);
    let openedAt: number | null = null;
    let ended = false;
    try {
      const stream = await call(followEvents, {
        query: { category: categories, ...(position === null ? {} : { last_event_id: position }) },
        signal: AbortSignal.any([signal, quiet.signal]),
      });
      const reader = new EventFrameReader(position);
      for await (const piece of stream.body) {
        window.clearTimeout(alarm);
        alarm = window.setTimeout(() => quiet.abort(), quietMs);
        if (openedAt === null) {
          openedAt = performance.now();
          onOpen();
        }
        for (const { event, data } of reader.feed(piece)) {
          const message = messageOf(event, data);
          if (message !== null) dispatch(message);
        }
        position = reader.lastId;
      }
      ended = true;
    } catch {
      // The loop reconnects after any error. If the sign-in session has expired, the next call waits for a sign-in.
    } finally {
      window.clearTimeout(alarm);
    }
    if (signal.aborted) return;
    const wasStable = openedAt !== null && performance.now() - openedAt >= stableMs;
    if (wasStable) backoff = minBackoffMs;
    if (wasStable && ended) continue;
    onFailure();
    become('lost');
    await sleep(backoff * (0.5 + Math.random() / 2), signal);
    backoff = Math.min(backoff * 2, maxBackoffMs);
  }
}
