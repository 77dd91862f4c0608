import type { Sample } from '@muster/protocol';
import type { Clock } from '../clock.ts';
import { type ForwardedSample, type WriteSeries, withNames } from '../domain/fleet/sample-forwarding.ts';
import { delivered, describeAttempt } from '../domain/notifications/delivery.ts';
import type { Context } from '../domain/shared/context.ts';

/**
 * Writes stored samples on to a database of series elsewhere. They wait in memory, as many as there is room for, and
 * nothing here ever waits for the far end: what does not fit, and what it refuses, is dropped and counted.
 */
export interface RemoteWrite {
  /** Takes samples of one agent that are stored. Those that are no newer than what was taken are passed over. */
  take(nodeId: string, samples: readonly Sample[]): void;
  stats(): RemoteWriteStats;
  /** Tries once more to write what waits, for a moment. */
  stop(): Promise<void>;
}

export interface RemoteWriteStats {
  readonly queued: number;
  readonly sent: number;
  /** There was no room. */
  readonly overflowed: number;
  /** The far end does not take them, now or later. */
  readonly refused: number;
  /** No newer than what was sent of their agent, or ahead of time. */
  readonly passedOver: number;
  /** Attempts that will be made again. */
  readonly retries: number;
}

export interface RemoteWriteLoop {
  readonly write: WriteSeries;
  /** In [0, 1). */
  readonly random: () => number;
  /** Samples that may wait. */
  readonly capacity: number;
}

/** Samples of one request: a dozen points each. */
const samplesOfBatch = 200;
/** How long the first waits for others. */
const gatherMs = 1_000;
const timeoutMs = 30_000;
const firstPauseMs = 500;
const longestPauseMs = 60_000;
/** A far end that asks for more rest than this is asked again all the same. */
const longestAskedMs = 600_000;
/**
 * A far end refuses a request whole for one series out of order. Halves of it are tried then, so that no agent costs
 * others their samples; so many requests at most for one batch, and fewer for the next where none of it was taken: some
 * far ends refuse whatever they are sent.
 */
const mostParts = 32;
const leastParts = 3;
/** What is dated further ahead would make a far end refuse everybody's samples of now as old. */
const mostAheadSecs = 300;
const lastTryMs = 3_000;
/** Between two lines that say that samples are dropped. */
const dropLogMs = 600_000;
/** Agents remembered by the time of their newest sample. */
const mostAgents = 100_000;

export function startRemoteWrite(context: Context, clock: Clock, options: RemoteWriteLoop): RemoteWrite {
  const { write, random, capacity } = options;
  const { log } = context;
  const stopping = new AbortController();
  const counts = { sent: 0, overflowed: 0, refused: 0, passedOver: 0, retries: 0 };
  const newest = new Map<string, number>();
  let queue: ForwardedSample[] = [];
  /** What of the queue is gone already; it is cut now and then. */
  let head = 0;
  /** Taken from the queue and on its way. */
  let underWay = 0;
  let failing = false;
  let dropLoggedAt = Number.NEGATIVE_INFINITY;
  let wake = () => {};

  const waiting = () => queue.length - head;

  function drop(kind: 'overflowed' | 'refused', count: number, why: string): void {
    counts[kind] += count;
    if (clock.monotonic() - dropLoggedAt < dropLogMs) return;
    dropLoggedAt = clock.monotonic();
    log.warn({ samples: count, reason: why }, 'samples dropped: not written to metrics.remote_write');
  }

  function take(nodeId: string, samples: readonly Sample[]): void {
    if (stopping.signal.aborted) return;
    const latest = Math.floor(context.now() / 1000) + mostAheadSecs;
    let last = newest.get(nodeId) ?? Number.NEGATIVE_INFINITY;
    for (const sample of samples.toSorted((one, other) => one.collected_at - other.collected_at)) {
      if (sample.collected_at <= last || sample.collected_at > latest) {
        counts.passedOver++;
        continue;
      }
      last = sample.collected_at;
      queue.push({ nodeId, sample });
    }
    // Those heard of last stand last, and the others are forgotten first.
    newest.delete(nodeId);
    newest.set(nodeId, last);
    if (newest.size > mostAgents) newest.delete(newest.keys().next().value as string);
    const over = waiting() - capacity;
    if (over > 0) {
      // The oldest: a far end may refuse them anyway.
      head += over;
      drop('overflowed', over, `more than ${capacity} wait`);
    }
    if (head > capacity) cut();
    if (waiting() > 0) wake();
  }

  function cut(): void {
    queue = queue.slice(head);
    head = 0;
  }

  /** Resolves after some time, or when it is to stop. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (stopping.signal.aborted) return resolve();
      const end = () => {
        callOff();
        stopping.signal.removeEventListener('abort', end);
        resolve();
      };
      const callOff = clock.after(ms, end);
      stopping.signal.addEventListener('abort', end, { once: true });
    });

  /** @returns false when it was to stop before the far end had answered */
  async function see(
    batch: readonly ForwardedSample[],
    parts: { left: number },
    signal?: AbortSignal,
  ): Promise<boolean> {
    for (let failures = 0; ; failures++) {
      parts.left--;
      const attempt = await withNames(context, batch).then(
        (named) => write(named, { timeoutMs, ...(signal ? { signal } : {}) }),
        (error: Error) => ({ status: null, reason: `the agents' names could not be read: ${error.message}` }),
      );
      if (delivered(attempt)) {
        if (failing) log.info({}, 'metrics.remote_write recovered; samples are written again');
        failing = false;
        counts.sent += batch.length;
        return true;
      }
      const { status } = attempt;
      if (status === null || status === 429 || status >= 500) {
        if (!failing)
          log.warn(
            { reason: describeAttempt(attempt), waiting: waiting() },
            'failed to write samples to metrics.remote_write; will retry, samples wait in memory',
          );
        failing = true;
        if (stopping.signal.aborted) return false;
        counts.retries++;
        const ceiling = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 16));
        const asked = status === null ? 0 : Math.min(attempt.retryAfterMs ?? 0, longestAskedMs);
        await pause(Math.max(ceiling * (0.5 + random() / 2), asked));
        continue;
      }
      const divisible = (status === 400 || status === 413 || status === 422) && batch.length > 1 && parts.left > 1;
      if (!divisible) {
        const said = attempt.text === undefined ? '' : `: ${printable(attempt.text)}`;
        drop('refused', batch.length, `${describeAttempt(attempt)}${said}`);
        return true;
      }
      const middle = batch.length >> 1;
      const first = await see(batch.slice(0, middle), parts, signal);
      return first && see(batch.slice(middle), parts, signal);
    }
  }

  async function work(): Promise<void> {
    const lastTry = new AbortController();
    stopping.signal.addEventListener('abort', () => clock.after(lastTryMs, () => lastTry.abort()), { once: true });
    let parts = mostParts;
    for (;;) {
      if (waiting() === 0) {
        if (stopping.signal.aborted) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      if (waiting() < samplesOfBatch) await pause(gatherMs);
      const batch = queue.slice(head, head + samplesOfBatch);
      head += batch.length;
      if (head > samplesOfBatch * 50 || head === queue.length) cut();
      underWay = batch.length;
      const sent = counts.sent;
      const seen = await see(batch, { left: parts }, lastTry.signal);
      parts = counts.sent > sent ? mostParts : Math.max(leastParts, parts >> 1);
      underWay = 0;
      if (seen) continue;
      log.warn({ samples: batch.length + waiting() }, 'stopped with samples not written to metrics.remote_write');
      return;
    }
  }

  const running = work().catch((error: unknown) =>
    log.error({ err: error }, 'metrics.remote_write stopped after an unexpected error'),
  );
  return {
    take,
    stats: () => ({ queued: waiting() + underWay, ...counts }),
    stop() {
      stopping.abort();
      wake();
      return running;
    },
  };
}

/** What somebody else's server says, on one line. */
const printable = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 200);
