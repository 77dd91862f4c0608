import { type AuditEvent, followEvents } from '@muster/protocol/http';
import { createParser } from 'eventsource-parser';
import { useSyncExternalStore } from 'react';
import { call, session } from './client.ts';
import { queryClient } from './query-client.ts';
import { type LiveMessage, staleAfter } from './stale.ts';
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
  mark: (key) => void queryClient.invalidateQueries({ queryKey: key }),
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

export const useLiveState = (): LiveState =>
  useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    () => state,
  );

/** Milliseconds: the orchestrator says something at least every 15 s, so a stream this quiet is a dead one. */
const quietMs = 40_000;
const firstWaitMs = 500;
const longestWaitMs = 5_000;

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
  void follow(running.signal);
}

function end(): void {
  running?.abort();
  running = null;
  staleness.clear();
  become('closed');
}

async function follow(signal: AbortSignal): Promise<void> {
  let place: string | null = null;
  let wait = firstWaitMs;
  const flows = () => {
    wait = firstWaitMs;
    if (state === 'live') return;
    // Hints have no place and are not told again: what is shown may have changed meanwhile.
    if (state === 'lost') spread({ kind: 'gap' });
    become('live');
  };
  become('connecting');
  while (!signal.aborted) {
    const quiet = new AbortController();
    let alarm = window.setTimeout(() => quiet.abort(), quietMs);
    try {
      const stream = await call(followEvents, {
        query: { category: categories, ...(place === null ? {} : { last_event_id: place }) },
        signal: AbortSignal.any([signal, quiet.signal]),
      });
      const parser = createParser({
        onEvent({ id, event, data }) {
          if (id !== undefined) place = id;
          if (data === '') return;
          const message = read(event, data);
          if (message !== null) spread(message);
        },
      });
      const decoder = new TextDecoder();
      for await (const piece of stream.body) {
        window.clearTimeout(alarm);
        alarm = window.setTimeout(() => quiet.abort(), quietMs);
        // A frame that only carries an id has no data, and the parser keeps it to itself.
        const text = decoder.decode(piece, { stream: true });
        place = lastId(text) ?? place;
        flows();
        parser.feed(text);
      }
    } catch {
      // Whatever it was: tried again below, and a session that ended is waited for there.
    } finally {
      window.clearTimeout(alarm);
    }
    if (signal.aborted) return;
    become('lost');
    await new Promise<void>((resolve) => {
      const timer = window.setTimeout(resolve, wait);
      signal.addEventListener('abort', () => {
        window.clearTimeout(timer);
        resolve();
      });
    });
    wait = Math.min(wait * 2, longestWaitMs);
  }
}

/** Also what only comes on request. */
const categories =
  'agent,operator,auth,module,assignment,state,run,drift,secret,terminal,channel,window,audit,enrolment,discovery,notification,output';

/** The last id in a piece of the stream, for frames without data. */
function lastId(text: string): string | null {
  const ids = [...text.matchAll(/^id: (\d+)\n/gm)];
  return ids.at(-1)?.[1] ?? null;
}

const hints: ReadonlySet<string> = new Set([
  'operation',
  'operations',
  'run',
  'agent',
  'agents',
  'window',
  'notification',
  'output',
] satisfies LiveMessage['kind'][]);

function read(event: string | undefined, data: string): LiveMessage | null {
  try {
    const value = JSON.parse(data);
    if (event === undefined || event === 'message') return { kind: 'event', event: value as AuditEvent };
    if (event === 'gap') return { kind: 'gap' };
    if (hints.has(event)) return { ...value, kind: event };
    return null;
  } catch {
    return null;
  }
}
