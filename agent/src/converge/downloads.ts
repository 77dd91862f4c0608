import type { Clock } from '../../../lib/src/clock.ts';
import { HostFailure } from '../host/failure.ts';
import { HttpFailure, httpGet } from '../host/network/http-get.ts';
import type { ContentCache } from '../journal/content-cache.ts';
import type { DownloadSource, StoredContent } from '../resources/provider/provider.ts';

/** Maximum size of a download, in bytes. */
const maxDownloadBytes = 4 * 1024 ** 3;
/** Milliseconds that one download may take, including its retries. */
const maxDownloadMs = 60 * 60_000;
/** Maximum number of consecutive attempts that receive no data. */
const maxAttempts = 4;
/** Maximum number of incomplete downloads to retain for a later operation. */
const maxIncomplete = 100;
/** Number of bytes to free in the cache if the server does not report the size. */
const unknownSizeBytes = 64 * 1024 * 1024;

/**
 * Downloads content into the agent's cache. An interrupted download resumes where it stopped, even in a later
 * operation. No part of a download is used before its hash is verified.
 */
export class Downloads {
  readonly #cache: () => ContentCache;
  readonly #clock: Clock;
  /** Environment with the proxy variables. */
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #abort = new AbortController();
  /** Hashes of downloads that may resume later, oldest first. */
  readonly #incomplete = new Set<string>();

  constructor(cache: () => ContentCache, clock: Clock, environment: Readonly<Record<string, string | undefined>>) {
    this.#cache = cache;
    this.#clock = clock;
    this.#environment = environment;
  }

  /**
   * Runs an action with content, which is downloaded first if it is not in the cache.
   * @param cancelled reports whether the operation was canceled
   * @throws HostFailure if the content cannot be downloaded; the error passed to `stop` if the agent stops
   */
  async use<T>(
    source: DownloadSource,
    cancelled: () => boolean,
    action: (content: StoredContent & { size: number }) => Promise<T>,
  ): Promise<T> {
    const cache = this.#cache();
    const release = cache.hold({ sha256: source.sha256, size: 0 });
    try {
      const size = cache.sizeOf(source.sha256) ?? (await this.#download(source, cancelled));
      return await action({ ...cache.stored({ sha256: source.sha256, size }), size });
    } finally {
      release();
    }
  }

  /**
   * Reads a small amount of content into memory.
   * @throws HostFailure if the content cannot be read or exceeds `limit` bytes; the error passed to `stop` if the agent
   * stops
   */
  async read(url: string, limit: number): Promise<Buffer> {
    const tooLong = () => new HostFailure(`the content is larger than ${limit} bytes`);
    const pieces: Buffer[] = [];
    try {
      const answer = await httpGet({ url, from: 0, environment: this.#environment, signal: this.#abort.signal });
      try {
        let length = 0;
        for await (const piece of answer.body) {
          length += piece.length;
          if (length > limit) throw tooLong();
          pieces.push(piece);
        }
      } finally {
        answer.close();
      }
    } catch (error) {
      this.#abort.signal.throwIfAborted();
      throw error;
    }
    return Buffer.concat(pieces);
  }

  /** Returns the hashes of downloads that may resume in a later operation. */
  get incomplete(): ReadonlySet<string> {
    return this.#incomplete;
  }

  /** Aborts all downloads with this error, because the agent is stopping. Received bytes are retained. */
  stop(error: Error): void {
    this.#abort.abort(error);
  }

  async #download(source: DownloadSource, cancelled: () => boolean): Promise<number> {
    const cache = this.#cache();
    const deadline = this.#clock.monotonic() + maxDownloadMs;
    let isRepeated = false;
    this.#keep(source.sha256);
    for (let attempt = 1; ; attempt++) {
      const arrived = cache.arrivedOf(source.sha256);
      try {
        const { size, from } = await this.#receive(source, arrived, deadline, cancelled);
        const isRight = await cache.complete({ sha256: source.sha256, size });
        this.#incomplete.delete(source.sha256);
        if (isRight) return size;
        // The bytes of an earlier download may belong to an earlier version of the content at the same URL.
        if (from === 0 || isRepeated)
          throw new HttpFailure('the content does not have the declared SHA-256, so nothing was changed', false);
        isRepeated = true;
      } catch (error) {
        this.#abort.signal.throwIfAborted();
        if (!(error instanceof HttpFailure) || !error.mayPass) throw error;
        if (cache.arrivedOf(source.sha256) > arrived) attempt = 1;
        if (attempt === maxAttempts) throw new HttpFailure(`${error.message} (in ${attempt} attempts)`, false);
        await this.#pause(1000 * 2 ** (attempt - 1));
      } finally {
        cache.leave({ sha256: source.sha256 });
      }
    }
  }

  #keep(sha256: string): void {
    this.#incomplete.delete(sha256);
    this.#incomplete.add(sha256);
    const [oldest] = this.#incomplete;
    if (this.#incomplete.size > maxIncomplete && oldest !== undefined) this.#incomplete.delete(oldest);
  }

  /**
   * Receives content, starting where the last attempt stopped.
   * @returns its size, and the position of the first byte that was received
   */
  async #receive(
    { url, sha256 }: DownloadSource,
    arrived: number,
    deadline: number,
    cancelled: () => boolean,
  ): Promise<{ size: number; from: number }> {
    const cache = this.#cache();
    const answer = await httpGet({ url, from: arrived, environment: this.#environment, signal: this.#abort.signal });
    try {
      const { from, total } = answer;
      if ((total ?? 0) > maxDownloadBytes) throw tooLarge();
      if (from < arrived) cache.discard({ sha256 });
      cache.begin({ sha256, size: total ?? from + unknownSizeBytes });
      let position = from;
      for await (const piece of answer.body) {
        if (cancelled()) throw new HostFailure('the operation was canceled during the download');
        if (this.#clock.monotonic() > deadline)
          throw new HostFailure(`the download takes longer than ${maxDownloadMs / 60_000} minutes`);
        if (position + piece.length > maxDownloadBytes) throw tooLarge();
        cache.add({ sha256, size: 0 }, position, piece);
        position += piece.length;
      }
      if (total !== null && position !== total)
        throw new HttpFailure(`the connection ended after ${position} of ${total} bytes`, true);
      return { size: position, from };
    } finally {
      answer.close();
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#abort;
    return new Promise((resolve, reject) => {
      const stop = () => {
        cancel();
        reject(signal.reason);
      };
      const cancel = this.#clock.after(ms, () => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
      signal.addEventListener('abort', stop, { once: true });
    });
  }
}

const tooLarge = (): HostFailure =>
  new HostFailure(`the content is larger than ${maxDownloadBytes / 1024 ** 3} GiB, the maximum for a download`);
