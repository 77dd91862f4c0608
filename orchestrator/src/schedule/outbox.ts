import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../../../lib/src/clock.ts';
import { attemptMs, undecipherable } from '../domain/notifications/channels.ts';
import { type Attempt, type Deliver, delivered } from '../domain/notifications/delivery.ts';
import { pruneNotifications } from '../domain/notifications/notifications.ts';
import {
  channelsToSend,
  giveUpOld,
  nextToSend,
  recordDelivered,
  recordFailure,
  recordRecovered,
  type Sending,
} from '../domain/notifications/outbox.ts';
import type { Context } from '../domain/shared/context.ts';
import type { Fence, Lease } from '../domain/shared/leases.ts';

/**
 * Sends the messages in the outbox. Each channel receives its messages in order, one at a time. Channels are served in
 * parallel and take turns, so that a slow channel does not delay the others.
 */

const intervalMs = 1_000;
/** Maximum number of messages in flight across all channels. */
const maxInFlight = 16;
/** Number of messages to read per channel at a time. */
const batch = 20;
/**
 * Maximum delay in milliseconds before a delivery is recorded. After a crash, deliveries that were not recorded are
 * repeated.
 */
const recordIntervalMs = 200;
const housekeepingMs = 60_000;
/**
 * Maximum number of milliseconds to wait for messages in flight at shutdown. The next startup resends aborted messages.
 */
const graceMs = 5_000;
/** Milliseconds between attempts to record an outcome. */
const recordRetryMs = 1_000;

export interface OutboxOptions {
  readonly deliver: Deliver;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Seconds after which an undelivered message is dropped. */
  readonly giveUpAfter: number;
  /** Number of days for which notifications are retained; 0 retains them forever. */
  readonly retentionDays: number;
  /** Timeout of one attempt in milliseconds. */
  readonly timeoutMs?: number;
  /** The outbox lease. Only the process that holds the lease sends. */
  readonly lease: Lease;
}

export interface Outbox {
  /** Sends everything that is due now. For tests. */
  turn(): Promise<void>;
  stop(): Promise<void>;
}

export function startOutbox(context: Context, clock: Clock, options: OutboxOptions): Outbox {
  const outbox = new Sender(context, clock, options);
  outbox.start();
  return outbox;
}

class Sender implements Outbox {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #options: OutboxOptions;
  /** Senders by channel, including senders that wait for a free slot. */
  readonly #active = new Map<string, Promise<void>>();
  /** Resolvers of senders that wait for a free slot. */
  readonly #queue: (() => void)[] = [];
  #inFlight = 0;
  #stopped = false;
  /** The fence of the lease; null if another process held the lease at the last check that succeeded. */
  #fence: Fence | null = null;
  /** Whether the last check succeeded. */
  #checked = false;
  #cancelTimer = () => {};
  #unsubscribe = () => {};
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #housekeptAt = Number.NEGATIVE_INFINITY;
  readonly #abort = new AbortController();
  readonly #stopping = Promise.withResolvers<void>();

  constructor(context: Context, clock: Clock, options: OutboxOptions) {
    this.#context = context;
    this.#clock = clock;
    this.#options = options;
  }

  start(): void {
    // Detaches the call from the async context of the request that sent the hint, so that log lines do not contain that
    // request's ID.
    const look = AsyncResource.bind(() => void this.#look());
    this.#unsubscribe = this.#context.bus.subscribe((hint) => {
      if (hint.type === 'deliveries_due' || hint.type === 'placed') look();
    });
    const schedule = () => {
      this.#cancelTimer = this.#clock.after(intervalMs, () => {
        void this.#look().then(() => {
          if (!this.#stopped) schedule();
        });
      });
    };
    schedule();
  }

  async turn(): Promise<void> {
    await this.#look();
    while (this.#active.size > 0) await Promise.all(this.#active.values());
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopping.resolve();
    this.#cancelTimer();
    this.#unsubscribe();
    const cancelTimer = this.#clock.after(graceMs, () => this.#abort.abort());
    await this.#looking;
    while (this.#active.size > 0) await Promise.all(this.#active.values());
    cancelTimer();
    await this.#options.lease
      .release()
      .catch((error: unknown) => this.#context.log.warn({ err: error }, 'failed to release the outbox lease'));
  }

  /**
   * Reports whether sending may continue: the outbox is not stopping, and this process has held the lease without
   * interruption since it acquired this fence.
   */
  #mayRun(fence: Fence): boolean {
    return !this.#stopped && this.#checked && this.#fence === fence;
  }

  /** Runs one check at a time. A hint during a check starts another check afterward. Never rejects. */
  #look(): Promise<void> {
    this.#lookAgain = true;
    this.#looking ??= (async () => {
      while (this.#lookAgain && !this.#stopped) {
        this.#lookAgain = false;
        await this.#lookOnce();
      }
    })()
      .catch((error: unknown) => this.#context.log.error({ err: error }, 'failed to read the outbox; will retry'))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    const due = await channelsToSend(this.#context);
    const now = this.#clock.monotonic();
    const keep = now - this.#housekeptAt >= housekeepingMs;
    if (due.length === 0 && this.#active.size === 0 && !keep) return;
    const fence = await this.#hold();
    if (fence === null) return this.#giveUp();
    if (this.#stopped) return;
    for (const channelId of due) {
      if (this.#active.has(channelId)) continue;
      const sending = this.#sendTo(channelId, fence)
        .catch((error: unknown) =>
          this.#context.log.error({ err: error, channel_id: channelId }, 'failed to send to a channel; will retry'),
        )
        .finally(() => this.#active.delete(channelId));
      this.#active.set(channelId, sending);
    }
    if (!keep) return;
    this.#housekeptAt = now;
    await giveUpOld(this.#context, fence, this.#options.giveUpAfter);
    await pruneNotifications(this.#context, fence, this.#options.retentionDays);
  }

  /** Completes the messages in flight, so that the next holder does not send them again, and releases the lease. */
  async #giveUp(): Promise<void> {
    await Promise.all(this.#active.values());
    await this.#options.lease.release();
  }

  /** Renews the lease. If the renewal fails, senders stop before their next message. */
  async #hold(): Promise<Fence | null> {
    try {
      this.#fence = await this.#options.lease.hold();
      this.#checked = true;
      return this.#fence;
    } catch (error) {
      this.#checked = false;
      throw error;
    }
  }

  /** Sends to one channel until the channel has no more messages or fails. */
  async #sendTo(channelId: string, fence: Fence): Promise<void> {
    while (this.#mayRun(fence)) {
      const sending = await nextToSend(this.#context, channelId, batch);
      if (sending === null) return;
      if (!(await this.#sendBatch(sending, fence))) return;
    }
  }

  async #sendBatch(sending: Sending, fence: Fence): Promise<boolean> {
    let done: string[] = [];
    let writtenAt = this.#clock.monotonic();
    const writeDone = async () => {
      const ids = done;
      done = [];
      if (ids.length > 0) await this.#record(fence, () => recordDelivered(this.#context, fence, sending, ids));
      writtenAt = this.#clock.monotonic();
    };
    let first = true;
    for (const next of sending.messages) {
      const attempt = await this.#attempt(sending, next.message, fence);
      // A channel has not failed if there was no attempt, or if the attempt was aborted because the outbox is stopping.
      if (attempt === null || (this.#abort.signal.aborted && !delivered(attempt))) break;
      if (!delivered(attempt)) {
        await writeDone();
        await this.#record(fence, () =>
          recordFailure(this.#context, fence, sending, next, attempt, this.#options.random()),
        );
        return false;
      }
      done.push(next.message.delivery_id);
      if (first) await this.#record(fence, () => recordRecovered(this.#context, fence, sending));
      first = false;
      if (this.#clock.monotonic() - writtenAt >= recordIntervalMs) await writeDone();
    }
    await writeDone();
    return this.#mayRun(fence);
  }

  /**
   * Makes one attempt after waiting for a free slot. Slots are granted in call order.
   * @returns null if this process has lost the lease or is stopping
   */
  async #attempt(
    { target }: Sending,
    message: Sending['messages'][number]['message'],
    fence: Fence,
  ): Promise<Attempt | null> {
    if (target === null) return { status: null, reason: undecipherable };
    if (this.#inFlight >= maxInFlight) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#inFlight++;
    try {
      if (!this.#mayRun(fence)) return null;
      const { signal } = this.#abort;
      return await this.#options.deliver(target, message, { timeoutMs: this.#options.timeoutMs ?? attemptMs, signal });
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#inFlight--;
    }
  }

  /**
   * Records outcomes, retrying until a write succeeds. The channel receives no messages in the meantime. Stops retrying
   * if the outbox is stopping or the lease is lost. The next holder then resends the delivered messages.
   */
  async #record(fence: Fence, write: () => Promise<void>): Promise<void> {
    for (;;)
      try {
        return await write();
      } catch (error) {
        this.#context.log.error({ err: error }, 'failed to record a delivery outcome; will retry');
        if (this.#stopped || this.#fence !== fence) return;
        await Promise.race([
          new Promise<void>((resolve) => this.#clock.after(recordRetryMs, resolve)),
          this.#stopping.promise,
        ]);
      }
  }
}
