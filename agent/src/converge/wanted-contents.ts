import { limits } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { HostFailure } from '../host/failure.ts';
import type { ContentCache } from '../journal/content-cache.ts';
import type { CopyReference, StoredContent } from '../resources/provider/provider.ts';

/** A request for part of the content. */
export interface ContentPart {
  readonly request: number;
  readonly operation_id: string;
  readonly sha256: string;
  readonly from: number;
  readonly bytes: number;
}

/** The content that operations are waiting for, from the link's point of view. Nothing is lost if the link closes. */
export interface ContentRequests {
  /** Returns the next part to request; null if no part is needed or the window is used up. */
  next(): ContentPart | null;
  /**
   * Stores received bytes.
   * @returns false if they were not requested or arrived out of order
   */
  received(request: number, bytes: Uint8Array): boolean;
  /**
   * Handles the refusal of a request.
   * @returns false if there was no such request
   */
  refused(request: number, message: string): boolean;
  /** Handles a closed link: all unanswered parts must be requested again. */
  unlinked(): void;
}

/** Milliseconds without received data after which an operation stops waiting for content. */
const stallMs = 10 * 60_000;
/** Number of times that content may arrive with the wrong hash before the request fails. */
const maxAttempts = 2;

interface Waiter {
  readonly operationId: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface Wanted {
  readonly reference: CopyReference;
  readonly waiters: Set<Waiter>;
  /** Number of bytes received, from the start. */
  arrived: number;
  /** Number of bytes received or requested. */
  requested: number;
  attempts: number;
  /** Time of the last received bytes, in monotonic milliseconds. */
  progressAt: number;
  cancelStall: () => void;
}

/** Fetches content for operations over the current link. */
export class WantedContents implements ContentRequests {
  readonly #cache: () => ContentCache;
  readonly #clock: Clock;
  readonly #onWanted: () => void;
  readonly #wanted = new Map<string, Wanted>();
  /** Requests without a complete response, oldest first. */
  #unanswered: (ContentPart & { arrived: number; readonly wanted: Wanted })[] = [];
  #lastRequest = 0;
  /** Why fetching has stopped; null until the agent stops. */
  #stopped: Error | null = null;

  constructor(cache: () => ContentCache, clock: Clock, onWanted: () => void) {
    this.#cache = cache;
    this.#clock = clock;
    this.#onWanted = onWanted;
  }

  /**
   * Runs an action with content. Fetches the content first if it is not in the cache.
   * @throws HostFailure if the content cannot be fetched; the error passed to `stop` if the agent stops
   */
  async use<T>(
    operationId: string,
    reference: CopyReference,
    action: (content: StoredContent) => Promise<T>,
  ): Promise<T> {
    const cache = this.#cache();
    const release = cache.hold(reference);
    try {
      if (!cache.has(reference)) await this.#fetch(operationId, reference);
      return await action(cache.stored(reference));
    } finally {
      release();
    }
  }

  #fetch(operationId: string, reference: CopyReference): Promise<void> {
    if (this.#stopped !== null) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      const wanted = this.#wanted.get(reference.sha256) ?? this.#begin(reference);
      wanted.waiters.add({ operationId, resolve, reject });
      if (wanted.arrived === reference.size && wanted.waiters.size === 1) this.#complete(wanted);
      this.#onWanted();
    });
  }

  #begin(reference: CopyReference): Wanted {
    const arrived = this.#cache().begin(reference);
    const wanted: Wanted = {
      ...{ reference, waiters: new Set(), arrived, requested: arrived, attempts: 1 },
      ...{ progressAt: this.#clock.monotonic(), cancelStall: () => {} },
    };
    this.#wanted.set(reference.sha256, wanted);
    const watch = (waitMs: number) => {
      wanted.cancelStall = this.#clock.after(waitMs, () => {
        const left = wanted.progressAt + stallMs - this.#clock.monotonic();
        if (left > 0) watch(left);
        else this.#fail(wanted, `nothing arrived for ${stallMs / 60_000} minutes`);
      });
    };
    watch(stallMs);
    return wanted;
  }

  next(): ContentPart | null {
    const { contentRequests, contentWindowBytes, contentRequestBytes } = limits;
    if (this.#unanswered.length >= contentRequests) return null;
    const used = this.#unanswered.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const wanted of this.#wanted.values()) {
      const { reference, requested } = wanted;
      const [waiter] = wanted.waiters;
      if (requested >= reference.size || waiter === undefined) continue;
      const bytes = Math.min(reference.size - requested, contentRequestBytes - (requested % contentRequestBytes));
      if (used + bytes > contentWindowBytes) return null;
      wanted.requested += bytes;
      this.#lastRequest = (this.#lastRequest % limits.mostChannel) + 1;
      const part = {
        ...{ request: this.#lastRequest, operation_id: waiter.operationId },
        ...{ sha256: reference.sha256, from: requested, bytes },
      };
      this.#unanswered.push({ ...part, arrived: 0, wanted });
      return part;
    }
    return null;
  }

  received(request: number, bytes: Uint8Array): boolean {
    const [first] = this.#unanswered;
    if (first?.request !== request || first.arrived + bytes.length > first.bytes) return false;
    const { wanted } = first;
    const position = first.from + first.arrived;
    first.arrived += bytes.length;
    if (first.arrived === first.bytes) this.#unanswered.shift();
    // The operation may have been canceled, or the transfer may have been restarted.
    if (this.#wanted.get(wanted.reference.sha256) !== wanted || position !== wanted.arrived) return true;
    try {
      this.#cache().add(wanted.reference, position, bytes);
    } catch (error) {
      this.#end(wanted, (waiter) => waiter.reject(error as Error));
      return true;
    }
    wanted.arrived += bytes.length;
    wanted.progressAt = this.#clock.monotonic();
    if (wanted.arrived === wanted.reference.size) this.#complete(wanted);
    return true;
  }

  refused(request: number, message: string): boolean {
    const [first] = this.#unanswered;
    if (first?.request !== request) return false;
    this.#unanswered.shift();
    if (this.#wanted.get(first.wanted.reference.sha256) === first.wanted) this.#fail(first.wanted, message);
    return true;
  }

  unlinked(): void {
    this.#unanswered = [];
    for (const wanted of this.#wanted.values()) wanted.requested = wanted.arrived;
  }

  /** Ends the waits of an operation. */
  cancel(operationId: string): void {
    for (const wanted of [...this.#wanted.values()]) {
      for (const waiter of [...wanted.waiters]) {
        if (waiter.operationId !== operationId) continue;
        wanted.waiters.delete(waiter);
        waiter.reject(new HostFailure('the operation was canceled while the content was being fetched'));
      }
      if (wanted.waiters.size === 0) this.#end(wanted, () => {});
    }
  }

  /** Ends all waits with this error, because the agent is stopping. */
  stop(error: Error): void {
    this.#stopped = error;
    for (const wanted of [...this.#wanted.values()]) this.#end(wanted, (waiter) => waiter.reject(error));
  }

  #complete(wanted: Wanted): void {
    const { reference } = wanted;
    this.#cache()
      .complete(reference)
      .then(
        (isRight) => {
          if (this.#wanted.get(reference.sha256) !== wanted) return;
          if (isRight) this.#end(wanted, (waiter) => waiter.resolve());
          else if (wanted.attempts === maxAttempts) this.#fail(wanted, 'the received bytes have a different hash');
          else this.#again(wanted);
        },
        (error: Error) => this.#end(wanted, (waiter) => waiter.reject(error)),
      )
      .catch((error: Error) => this.#end(wanted, (waiter) => waiter.reject(error)));
  }

  #again(wanted: Wanted): void {
    wanted.attempts++;
    wanted.arrived = this.#cache().begin(wanted.reference);
    wanted.requested = wanted.arrived;
    this.#onWanted();
  }

  #fail(wanted: Wanted, reason: string): void {
    const { sha256, size } = wanted.reference;
    const failure = new HostFailure(`cannot fetch the content sha256:${sha256} (${size} bytes): ${reason}`);
    this.#end(wanted, (waiter) => waiter.reject(failure));
  }

  #end(wanted: Wanted, settle: (waiter: Waiter) => void): void {
    const { sha256 } = wanted.reference;
    if (this.#wanted.get(sha256) === wanted) this.#wanted.delete(sha256);
    wanted.cancelStall();
    this.#cache().leave(wanted.reference);
    for (const waiter of wanted.waiters) settle(waiter);
    wanted.waiters.clear();
  }
}
