import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { Engine } from '../converge/engine.ts';
import { PathWatch } from '../host/files/path-watch.ts';

/**
 * Detects changes to applied resources within seconds. Watches their paths, observes a resource after an event as a
 * drift check would, and sends a hint if the state differs from the one last reported to the orchestrator. Observes
 * nothing while an operation runs, because changes by an operation match the applied state only after the operation has
 * finished.
 */

export interface DriftWatchOptions {
  engine: Pick<Engine, 'applied' | 'observe'>;
  clock: Clock;
  log: Log;
  /** Sends a hint to the orchestrator. @returns false if the link is down */
  hint: (keys: string[]) => boolean;
}

/** Debounce interval, because one change causes several events and often affects several files. */
const debounceMs = 100;
/**
 * Number of times that a path is observed without a delay. Later delays double from `minBackoffMs` to `maxBackoffMs`.
 */
const freeObservations = 10;
const minBackoffMs = 1_000;
const maxBackoffMs = 300_000;
/** Minimum time without events after which the backoff of a path starts over. */
const quietMs = 10_000;
/** Delay of the first observation, which finds changes made while the agent was not running. */
const startDelayMs = 2_000;
/**
 * Delay of the first observation of a new path, which finds changes made between the apply and the start of the watch.
 */
const newPathDelayMs = 500;
/** Interval at which a hint is repeated until a drift check follows. */
const repeatHintMs = 60_000;
/** Retry interval while an operation runs. */
const busyRetryMs = 1_000;
const maxKeys = 16;
/** Maximum length of a key. The orchestrator closes the link if a hint contains a longer key. */
const maxKeyLength = 200;

interface Path {
  keys: string[];
  /** Number of observations since the backoff started over. */
  observations: number;
  observedAt: number;
  /** Time of the next observation; null if there was no event. */
  dueAt: number | null;
}

export class DriftWatch {
  readonly #options: DriftWatchOptions;
  readonly #watch: PathWatch;
  #applies = -1;
  #paths = new Map<string, Path>();
  /** Each resource's state as last reported to the orchestrator; empty if the resource is as applied. */
  #known = new Map<string, string>();
  /** States that differ and that no drift check has found yet. */
  readonly #unreported = new Map<string, string>();
  #observing: Promise<void> | null = null;
  #ended = false;
  #cancelObservation = () => {};
  #nextAt = Number.POSITIVE_INFINITY;
  #cancelHint = () => {};

  constructor(options: DriftWatchOptions) {
    this.#options = options;
    this.#watch = new PathWatch({
      clock: options.clock,
      changed: (path) => this.#changed(path),
      warn: (fields, message) => options.log.warn(fields, message),
    });
  }

  /** Watches the resources from earlier applies. */
  start(): void {
    this.#refresh();
    const now = this.#options.clock.monotonic();
    for (const path of this.#paths.values()) path.dueAt = now + startDelayMs;
    this.#schedule();
  }

  /**
   * Handles a finished operation.
   * @param succeeded whether the operation was an apply that succeeded, so that no resource has drifted
   */
  operationEnded(succeeded: boolean): void {
    if (this.#ended) return;
    this.#refresh();
    if (succeeded) {
      this.#known.clear();
      this.#unreported.clear();
      for (const { keys } of this.#paths.values()) for (const key of keys) this.#known.set(key, '');
    }
    this.#schedule();
  }

  /** Handles a drift check that has reported the given states to the orchestrator. */
  measured(fingerprints: ReadonlyMap<string, string>): void {
    for (const [key, fingerprint] of fingerprints) this.#known.set(key, fingerprint);
    this.#unreported.clear();
    this.#cancelHint();
  }

  /** Resends all hints on a new link, because an earlier link may have lost them. */
  linked(): void {
    this.#hint();
  }

  end(): void {
    this.#ended = true;
    this.#cancelObservation();
    this.#cancelHint();
    this.#watch.end();
  }

  #refresh(): void {
    const { applies, watched } = this.#options.engine.applied();
    if (applies === this.#applies) return;
    this.#applies = applies;
    const before = this.#paths;
    const fresh: Path = { ...unseen, dueAt: this.#options.clock.monotonic() + newPathDelayMs };
    this.#paths = new Map();
    for (const [key, paths] of watched)
      for (const path of paths) {
        const known = this.#paths.get(path);
        if (known !== undefined) known.keys.push(key);
        else this.#paths.set(path, { ...(before.get(path) ?? fresh), keys: [key] });
      }
    this.#watch.set(this.#paths.keys());
  }

  #changed(changed: string): void {
    const path = this.#paths.get(changed);
    if (path === undefined || path.dueAt !== null) return;
    const now = this.#options.clock.monotonic();
    const wait = waitAfter(path.observations);
    if (now - path.observedAt > Math.max(quietMs, 2 * wait)) path.observations = 0;
    path.dueAt = Math.max(now + debounceMs, path.observedAt + waitAfter(path.observations));
    this.#scheduleAt(path.dueAt);
  }

  #schedule(): void {
    let first = Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.#paths.values()) if (dueAt !== null && dueAt < first) first = dueAt;
    this.#cancelObservation();
    this.#nextAt = Number.POSITIVE_INFINITY;
    if (first < Number.POSITIVE_INFINITY) this.#scheduleAt(first);
  }

  #scheduleAt(at: number): void {
    if (at >= this.#nextAt || this.#ended) return;
    this.#cancelObservation();
    this.#nextAt = at;
    const { clock } = this.#options;
    this.#cancelObservation = clock.after(Math.max(0, at - clock.monotonic()), () => {
      this.#nextAt = Number.POSITIVE_INFINITY;
      this.#observing ??= this.#observeDue()
        .catch((error: unknown) => this.#options.log.error({ error }, 'failed to observe resources'))
        .finally(() => {
          this.#observing = null;
        });
    });
  }

  async #observeDue(): Promise<void> {
    const { engine, clock, log } = this.#options;
    const now = clock.monotonic();
    const due = [...this.#paths.values()].filter(({ dueAt }) => dueAt !== null && dueAt <= now);
    // An event during the observation requests another observation.
    for (const path of due) path.dueAt = null;
    const fingerprints = await engine.observe(new Set(due.flatMap(({ keys }) => keys)));
    if (this.#ended) return;
    if (fingerprints === null) {
      // Either an operation is running, and the resource is observed when it finishes, or an operation has just
      // finished, and the resource is observed on the retry.
      for (const path of due) path.dueAt ??= now;
      this.#scheduleAt(clock.monotonic() + busyRetryMs);
      return;
    }
    const observedAt = clock.monotonic();
    for (const path of due) {
      path.observations++;
      path.observedAt = observedAt;
      // Events that arrive during the observation are delayed like all others.
      if (path.dueAt !== null) path.dueAt = Math.max(path.dueAt, observedAt + waitAfter(path.observations));
    }
    const changed: string[] = [];
    for (const [key, fingerprint] of fingerprints) {
      const known = this.#known.get(key);
      if (fingerprint === (known ?? '')) {
        this.#known.set(key, fingerprint);
        this.#unreported.delete(key);
      } else if (this.#unreported.get(key) !== fingerprint) {
        this.#unreported.set(key, fingerprint);
        changed.push(key);
      }
    }
    if (changed.length > 0) {
      log.info(
        { resources: named(changed), count: changed.length },
        'found changes to applied resources on this machine',
      );
      this.#hint();
    }
    this.#schedule();
  }

  #hint(): void {
    this.#cancelHint();
    if (this.#unreported.size === 0 || this.#ended) return;
    this.#options.hint(named([...this.#unreported.keys()]));
    this.#cancelHint = this.#options.clock.after(repeatHintMs, () => this.#hint());
  }
}

const named = (keys: readonly string[]): string[] =>
  keys
    .slice(0, maxKeys)
    // Truncation may split a surrogate pair.
    .map((key) => (key.length > maxKeyLength ? `${key.slice(0, maxKeyLength - 1).toWellFormed()}…` : key));

const unseen: Path = { keys: [], observations: 0, observedAt: Number.NEGATIVE_INFINITY, dueAt: null };

/** Returns the minimum number of milliseconds between two observations of a path. */
export const waitAfter = (observations: number): number =>
  observations < freeObservations
    ? 0
    : Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(20, observations - freeObservations));
