import type { Sample } from '@muster/protocol';
import type { Clock } from '../../../lib/src/clock.ts';
import { type ForwardedSample, type WriteSeries, withNames } from '../domain/fleet/sample-forwarding.ts';
import { type Attempt, delivered, describeAttempt } from '../domain/notifications/delivery.ts';
import type { Context } from '../domain/shared/context.ts';
import { RemoteWriteQueue } from './remote-write-queue.ts';

/**
 * Forwards stored samples to a remote time-series database. Samples wait in a bounded queue in memory, so that no other
 * work waits for the remote server. Samples that exceed the queue's capacity or that the server refuses are dropped and
 * counted.
 */
export interface RemoteWrite {
  /** Queues one agent's stored samples. Skips samples that are not newer than the agent's last queued sample. */
  take(nodeId: string, samples: readonly Sample[]): void;
  stats(): RemoteWriteStats;
  /** Stops after one attempt to write the queued samples, which takes at most 3 s. */
  stop(): Promise<void>;
}

export interface RemoteWriteStats {
  readonly queued: number;
  readonly sent: number;
  /** Samples dropped because the queue was full. */
  readonly overflowed: number;
  /** Samples that the remote server refused permanently. */
  readonly refused: number;
  /** Samples skipped because they were not newer than the agent's queued samples, or too far in the future. */
  readonly passedOver: number;
  /** Failed attempts that will be retried. */
  readonly retries: number;
}

export interface RemoteWriteLoop {
  readonly write: WriteSeries;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Maximum number of queued samples. */
  readonly capacity: number;
}

/** Maximum number of samples in one request. Each has about a dozen points. */
const samplesOfBatch = 200;
/** Milliseconds for which the first sample in a batch waits for more samples. */
const gatherMs = 1_000;
const timeoutMs = 30_000;
const minBackoffMs = 500;
const maxBackoffMs = 60_000;
/** Maximum Retry-After delay that is respected, in milliseconds. */
const maxRetryAfterMs = 600_000;
/**
 * Maximum number of requests for one batch. A remote server refuses a whole request if one series is out of order. The
 * batch is then split in half, so that the samples of other agents are stored. The maximum shrinks while no sample is
 * accepted, because some servers refuse every request.
 */
const maxParts = 32;
const minParts = 3;
/**
 * Samples that are further in the future are skipped, because a remote server that stores one of them might then refuse
 * current samples as too old.
 */
const maxAheadSecs = 300;
const lastTryMs = 3_000;
/** Minimum interval in milliseconds between log lines about dropped samples. */
const dropLogMs = 600_000;
export function startRemoteWrite(context: Context, clock: Clock, options: RemoteWriteLoop): RemoteWrite {
  const { write, random, capacity } = options;
  const { log } = context;
  const stopping = new AbortController();
  const counts = { sent: 0, overflowed: 0, refused: 0, passedOver: 0, retries: 0 };
  const queue = new RemoteWriteQueue(capacity);
  /** Samples that have been taken from the queue and are in flight. */
  let inFlight = 0;
  let failing = false;
  let wake = () => {};

  const logDrop = createDropLog(clock, log);

  function take(nodeId: string, samples: readonly Sample[]): void {
    if (stopping.signal.aborted) return;
    const latest = Math.floor(context.now() / 1000) + maxAheadSecs;
    const { skipped, dropped } = queue.add(nodeId, samples, latest);
    counts.passedOver += skipped;
    counts.overflowed += dropped;
    if (dropped > 0) logDrop(dropped, `the queue of ${capacity} samples is full`);
    if (queue.length > 0) wake();
  }

  /** Writes a batch. @returns false if the process began to stop before the remote server responded */
  async function send(
    batch: readonly ForwardedSample[],
    parts: { left: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    for (let failures = 0; ; failures++) {
      parts.left--;
      const attempt = await writeOnce(context, write, batch, signal);
      const verdict = judge(attempt, batch.length > 1 && parts.left > 1);
      if (verdict === 'retry') {
        if (!failing)
          log.warn(
            { reason: describeAttempt(attempt), waiting: queue.length },
            'failed to send samples to the remote-write endpoint; will queue samples in memory and retry',
          );
        failing = true;
        if (stopping.signal.aborted) return false;
        counts.retries++;
        await pause(clock, backoffMs(attempt, failures, random()), stopping.signal);
        continue;
      }
      if (verdict === 'split') {
        const middle = batch.length >> 1;
        const first = await send(batch.slice(0, middle), parts, signal);
        return first && send(batch.slice(middle), parts, signal);
      }
      if (verdict === 'refused') {
        counts.refused += batch.length;
        logDrop(batch.length, describeRefusal(attempt));
        return true;
      }
      if (failing) log.info({}, 'the remote-write endpoint recovered; sending queued samples');
      failing = false;
      counts.sent += batch.length;
      return true;
    }
  }

  async function work(): Promise<void> {
    const lastTry = new AbortController();
    stopping.signal.addEventListener('abort', () => clock.after(lastTryMs, () => lastTry.abort()), { once: true });
    let parts = maxParts;
    for (;;) {
      if (queue.length === 0) {
        if (stopping.signal.aborted) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      if (queue.length < samplesOfBatch) await pause(clock, gatherMs, stopping.signal);
      const batch = queue.take(samplesOfBatch);
      inFlight = batch.length;
      const sent = counts.sent;
      const answered = await send(batch, { left: parts }, lastTry.signal);
      parts = counts.sent > sent ? maxParts : Math.max(minParts, parts >> 1);
      inFlight = 0;
      if (answered) continue;
      log.warn({ samples: batch.length + queue.length }, 'remote write stopped before all samples were sent');
      return;
    }
  }

  const running = work().catch((error: unknown) =>
    log.error({ err: error }, 'remote write stopped after an unexpected error'),
  );
  return {
    take,
    stats: () => ({ queued: queue.length + inFlight, ...counts }),
    stop() {
      stopping.abort();
      wake();
      return running;
    },
  };
}

const writeOnce = (context: Context, write: WriteSeries, batch: readonly ForwardedSample[], signal: AbortSignal) =>
  withNames(context, batch).then(
    (named) => write(named, { timeoutMs, signal }),
    (error: Error) => ({ status: null, reason: `failed to read agent names: ${error.message}` }),
  );

/** @returns a function that logs dropped samples, at most once per interval */
function createDropLog(clock: Clock, log: Context['log']): (samples: number, reason: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (samples, reason) => {
    if (clock.monotonic() - loggedAt < dropLogMs) return;
    loggedAt = clock.monotonic();
    log.warn({ samples, reason }, 'dropped samples for the remote-write endpoint');
  };
}

/**
 * Decides what to do with a batch after an attempt to write it.
 * @param divisible whether the batch can be split in half
 */
function judge(attempt: Attempt, divisible: boolean): 'stored' | 'retry' | 'split' | 'refused' {
  const { status } = attempt;
  if (delivered(attempt)) return 'stored';
  if (status === null || status === 429 || status >= 500) return 'retry';
  return divisible && (status === 400 || status === 413 || status === 422) ? 'split' : 'refused';
}

/** @param failures number of previous failures @param random in [0, 1). @returns milliseconds until the next attempt */
function backoffMs(attempt: Attempt, failures: number, random: number): number {
  const ceiling = Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(failures, 16));
  const requestedWait = attempt.status === null ? 0 : Math.min(attempt.retryAfterMs ?? 0, maxRetryAfterMs);
  return Math.max(ceiling * (0.5 + random / 2), requestedWait);
}

/** Resolves after the delay, or when the signal is aborted. */
const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      cancelTimer();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancelTimer = clock.after(ms, end);
    signal.addEventListener('abort', end, { once: true });
  });

/** Describes a refusal by the response's status and text. */
function describeRefusal(attempt: Attempt): string {
  const text = attempt.status === null ? undefined : attempt.text;
  return `${describeAttempt(attempt)}${text === undefined ? '' : `: ${printable(text)}`}`;
}

const printable = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 200);
