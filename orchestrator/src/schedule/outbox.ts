import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../clock.ts';
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
import type { Lease } from '../domain/shared/leases.ts';

/**
 * Sends what the outbox holds: to each channel in order, one message at a time; to many channels at once, taking turns, so
 * that one that is slow holds up none of the others. One timer, whatever there is to send.
 */

const intervalMs = 1_000;
/** Messages under way at once, over all channels. */
const mostAtOnce = 16;
/** Messages of a channel that are read at one time. */
const batch = 20;
/** What was delivered is written down at the latest after so long: what is not written is sent again after a crash. */
const unwrittenMs = 200;
const housekeepingMs = 60_000;
/** Stopping waits so long for what is under way. What is cut off then is sent again at the next start. */
const graceMs = 5_000;
/** After an outcome could not be written down. */
const writeAgainMs = 1_000;

export interface OutboxOptions {
  readonly deliver: Deliver;
  /** In [0, 1). */
  readonly random: () => number;
  /** Seconds after which a message that could not be delivered is given up. */
  readonly giveUpAfter: number;
  /** Days for which notifications are kept; 0: however long. */
  readonly retentionDays: number;
  /** Milliseconds for one attempt. */
  readonly timeoutMs?: number;
  /** Of all processes that share the database one sends. */
  readonly lease: Lease;
}

export interface Outbox {
  /** Looks for what is due; resolves when that has been sent as far as it can be now. For tests. */
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
  /** Channels that are being sent to or wait for their turn. */
  readonly #active = new Map<string, Promise<void>>();
  /** Who waits for one of the places that are under way. */
  readonly #queue: (() => void)[] = [];
  #underWay = 0;
  #stopped = false;
  /** As it was when it was last looked, which is every second while there is something to send. */
  #leased = false;
  #callOff = () => {};
  #unsubscribe = () => {};
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #keptAt = Number.NEGATIVE_INFINITY;
  readonly #abort = new AbortController();
  readonly #stopping = Promise.withResolvers<void>();

  constructor(context: Context, clock: Clock, options: OutboxOptions) {
    this.#context = context;
    this.#clock = clock;
    this.#options = options;
  }

  start(): void {
    // What is sent is no part of the request whose hint came first: its log lines must not say so.
    const look = AsyncResource.bind(() => void this.#look());
    this.#unsubscribe = this.#context.bus.subscribe((hint) => {
      if (hint.type === 'deliveries_due' || hint.type === 'placed') look();
    });
    const schedule = () => {
      this.#callOff = this.#clock.after(intervalMs, () => {
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
    this.#callOff();
    this.#unsubscribe();
    const callOff = this.#clock.after(graceMs, () => this.#abort.abort());
    await this.#looking;
    while (this.#active.size > 0) await Promise.all(this.#active.values());
    callOff();
    await this.#options.lease
      .release()
      .catch((error: unknown) => this.#context.log.warn({ err: error }, 'failed to release the lease of the outbox'));
  }

  get #mayRun(): boolean {
    return !this.#stopped && this.#leased;
  }

  /** One look at a time; a hint that comes during one is followed by another. Never rejects. */
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
    const keep = now - this.#keptAt >= housekeepingMs;
    if (due.length === 0 && this.#active.size === 0 && !keep) return;
    await this.#hold();
    if (!this.#mayRun) return;
    for (const channelId of due) {
      if (this.#active.has(channelId)) continue;
      const sending = this.#sendTo(channelId)
        .catch((error: unknown) =>
          this.#context.log.error({ err: error, channel_id: channelId }, 'failed to send to a channel; will retry'),
        )
        .finally(() => this.#active.delete(channelId));
      this.#active.set(channelId, sending);
    }
    if (!keep) return;
    this.#keptAt = now;
    await giveUpOld(this.#context, this.#options.giveUpAfter);
    await pruneNotifications(this.#context, this.#options.retentionDays);
  }

  /** What is under way stops at its next message once the lease is another's, or nobody can say whose it is. */
  async #hold(): Promise<void> {
    try {
      this.#leased = (await this.#options.lease.hold()) !== null;
    } catch (error) {
      this.#leased = false;
      throw error;
    }
  }

  /** Sends to one channel until nothing is left, or until it fails. */
  async #sendTo(channelId: string): Promise<void> {
    while (this.#mayRun) {
      const sending = await nextToSend(this.#context, channelId, batch);
      if (sending === null) return;
      if (!(await this.#sendBatch(sending))) return;
    }
  }

  /** @returns whether all of it was delivered */
  async #sendBatch(sending: Sending): Promise<boolean> {
    let done: string[] = [];
    let writtenAt = this.#clock.monotonic();
    const writeDone = async () => {
      const ids = done;
      done = [];
      if (ids.length > 0) await this.#record(() => recordDelivered(this.#context, ids));
      writtenAt = this.#clock.monotonic();
    };
    let first = true;
    for (const next of sending.messages) {
      const attempt = await this.#attempt(sending, next.message);
      // Not made, or cut off by ourselves: that says nothing about the channel.
      if (attempt === null || (this.#abort.signal.aborted && !delivered(attempt))) break;
      if (!delivered(attempt)) {
        await writeDone();
        await this.#record(() => recordFailure(this.#context, sending, next, attempt, this.#options.random()));
        return false;
      }
      done.push(next.message.delivery_id);
      if (first && sending.failures > 0) await this.#record(() => recordRecovered(this.#context, sending));
      first = false;
      if (this.#clock.monotonic() - writtenAt >= unwrittenMs) await writeDone();
    }
    await writeDone();
    return this.#mayRun;
  }

  /** In its turn: whoever has waited longest for one of the places gets the next. Null: it is no longer for us to send. */
  async #attempt({ target }: Sending, message: Sending['messages'][number]['message']): Promise<Attempt | null> {
    if (target === null) return { status: null, reason: undecipherable };
    if (this.#underWay >= mostAtOnce) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#underWay++;
    try {
      if (!this.#mayRun) return null;
      const { signal } = this.#abort;
      return await this.#options.deliver(target, message, { timeoutMs: this.#options.timeoutMs ?? attemptMs, signal });
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#underWay--;
    }
  }

  /**
   * Writes down what became of messages, however often it takes: until it is written, nothing more is sent to that channel.
   * Given up only when stopping; what was delivered is then sent once more.
   */
  async #record(write: () => Promise<void>): Promise<void> {
    for (;;)
      try {
        return await write();
      } catch (error) {
        this.#context.log.error({ err: error }, 'failed to record the outcome of a delivery; will retry');
        if (this.#stopped) return;
        await Promise.race([
          new Promise<void>((resolve) => this.#clock.after(writeAgainMs, resolve)),
          this.#stopping.promise,
        ]);
      }
  }
}
