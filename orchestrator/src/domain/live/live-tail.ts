import { setImmediate as nextTurn } from 'node:timers/promises';
import { placedEvents } from '../../store/queries/audit.ts';
import type { PlacedEvent } from '../audit/placed-event.ts';
import type { Context } from '../shared/context.ts';
import type { Follower } from './live-follower.ts';
import { eventFrame, wants } from './live-frames.ts';

export const pageSize = 250;

/** The tail of the event chain, read once for all followers that are up to date. */
export class LiveTail {
  readonly #context: Context;
  readonly #monotonic: () => number;
  readonly #live = new Set<Follower>();
  /** The position of the last event that live followers received. Not meaningful without followers. */
  #place = 0;
  #reading = false;
  #again = false;

  constructor(context: Context, monotonic: () => number) {
    this.#context = context;
    this.#monotonic = monotonic;
  }

  /** The position of the last event that live followers received; null without live followers. */
  get place(): number | null {
    return this.#live.size > 0 ? this.#place : null;
  }

  has(follower: Follower): boolean {
    return this.#live.has(follower);
  }

  /**
   * Adds a follower if it is up to date.
   * @returns whether the follower was added
   */
  join(follower: Follower): boolean {
    if (this.#live.size === 0) this.#place = follower.place;
    else if (follower.place < this.#place) return false;
    this.#live.add(follower);
    void this.read();
    return true;
  }

  leave(follower: Follower): void {
    this.#live.delete(follower);
  }

  /** Buffers a frame for a live follower. A follower that has fallen behind is removed from the tail. */
  give(follower: Follower, frame: string): void {
    if (!follower.give(frame, this.#monotonic())) this.#live.delete(follower);
  }

  chainGrew(place: number): void {
    if (place > this.#place) void this.read();
  }

  /** Reads new events from the chain, and buffers them for all live followers. Never rejects. */
  async read(): Promise<void> {
    this.#again = true;
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#again && this.#live.size > 0) {
        this.#again = false;
        for (let more = true; more && this.#live.size > 0; ) {
          const from = this.#place;
          const rows = await readPlaced(this.#context, from);
          // During the read, all followers left and another follower joined, so the tail has moved.
          if (from !== this.#place) {
            this.#again = true;
            break;
          }
          for (const event of rows) this.#spread(event);
          more = rows.length === pageSize;
          await nextTurn();
        }
      }
    } catch (error) {
      this.#context.log.warn({ err: error }, 'failed to read live events; will retry');
    } finally {
      this.#reading = false;
    }
  }

  #spread(event: PlacedEvent): void {
    let frame: string | null = null;
    for (const follower of this.#live) {
      if (event.place <= follower.place) continue;
      follower.place = event.place;
      if (!wants(follower.request.filter, event)) continue;
      frame ??= eventFrame(event);
      this.give(follower, frame);
    }
    this.#place = event.place;
  }
}

/** Reads a page of events with positions greater than `after`. */
export const readPlaced = async ({ db }: Pick<Context, 'db'>, after: number): Promise<PlacedEvent[]> =>
  (await db.all(placedEvents, { after, limit: pageSize })) as unknown as PlacedEvent[];
