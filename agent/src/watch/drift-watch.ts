import type { Clock } from '../../../lib/src/clock.ts';
import type { Log } from '../../../lib/src/log.ts';
import type { Engine } from '../converge/engine.ts';
import { PathWatch } from '../host/files/path-watch.ts';

/**
 * Notices at once when something that was applied is changed by somebody else. The paths of what was applied are
 * watched; what may have changed is looked at as a drift check would, here, and only when it looks other than the
 * orchestrator knows is that worth a hint. While an operation runs nothing is looked at: what happened meanwhile is
 * afterwards, and what the operation did itself is then as applied.
 */

export interface DriftWatchOptions {
  engine: Pick<Engine, 'applied' | 'look'>;
  clock: Clock;
  log: Log;
  /** Tells the orchestrator. @returns false when it is not connected */
  hint: (keys: string[]) => boolean;
}

/** One change makes several events, and often several files: they are waited for so long. */
const gatherMs = 100;
/** A path is looked at so often before it has to wait, from one second doubling up to five minutes. */
const freeLooks = 10;
const firstWaitMs = 1_000;
const mostWaitMs = 300_000;
/** A path that was quiet for longer than this, and for longer than it had to wait, begins anew. */
const quietMs = 10_000;
/** What changed while the agent was not there is looked for once it has started. */
const firstLookMs = 2_000;
/** What is watched from now on may have been changed between its apply and now. */
const freshLookMs = 500;
/** A hint that no check followed is given again. */
const againMs = 60_000;
/** While something runs it is tried so often to look. */
const busyMs = 1_000;
/** What a hint has room for. */
const mostKeys = 16;
/** Names are of any length; a hint that the orchestrator does not take would end the link, and the next one too. */
const longestKey = 200;

interface Path {
  keys: string[];
  /** How often it was looked at without having been quiet. */
  looks: number;
  lookedAt: number;
  /** When it is to be looked at; null: nothing has happened. */
  dueAt: number | null;
}

export class DriftWatch {
  readonly #options: DriftWatchOptions;
  readonly #watch: PathWatch;
  #applies = -1;
  #paths = new Map<string, Path>();
  /** How each resource looks as far as the orchestrator knows; empty: as applied. */
  #known = new Map<string, string>();
  /** What looks otherwise, and no check has found it yet. */
  readonly #wanted = new Map<string, string>();
  #looking: Promise<void> | null = null;
  #ended = false;
  #callOffLook = () => {};
  #lookAt = Number.POSITIVE_INFINITY;
  #callOffHint = () => {};

  constructor(options: DriftWatchOptions) {
    this.#options = options;
    this.#watch = new PathWatch({
      clock: options.clock,
      changed: (path) => this.#changed(path),
      warn: (fields, message) => options.log.warn(fields, message),
    });
  }

  /** Begins with what was applied before the agent was started. */
  start(): void {
    this.#refresh();
    const now = this.#options.clock.monotonic();
    for (const path of this.#paths.values()) path.dueAt = now + firstLookMs;
    this.#schedule();
  }

  /** An operation has ended. @param succeeded an apply that did: everything is as applied, as far as anybody knows */
  operationEnded(succeeded: boolean): void {
    if (this.#ended) return;
    this.#refresh();
    if (succeeded) {
      this.#known.clear();
      this.#wanted.clear();
      for (const { keys } of this.#paths.values()) for (const key of keys) this.#known.set(key, '');
    }
    this.#schedule();
  }

  /** A drift check has found resources to look like this, and the orchestrator hears of it. */
  measured(looks: ReadonlyMap<string, string>): void {
    for (const [key, look] of looks) this.#known.set(key, look);
    this.#wanted.clear();
    this.#callOffHint();
  }

  /** The link is up: hints that were given on another one may have been lost. */
  linked(): void {
    this.#hint();
  }

  end(): void {
    this.#ended = true;
    this.#callOffLook();
    this.#callOffHint();
    this.#watch.end();
  }

  #refresh(): void {
    const { applies, watched } = this.#options.engine.applied();
    if (applies === this.#applies) return;
    this.#applies = applies;
    const before = this.#paths;
    const fresh: Path = { ...unseen, dueAt: this.#options.clock.monotonic() + freshLookMs };
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
    const wait = waitAfter(path.looks);
    if (now - path.lookedAt > Math.max(quietMs, 2 * wait)) path.looks = 0;
    path.dueAt = Math.max(now + gatherMs, path.lookedAt + waitAfter(path.looks));
    this.#scheduleAt(path.dueAt);
  }

  #schedule(): void {
    let first = Number.POSITIVE_INFINITY;
    for (const { dueAt } of this.#paths.values()) if (dueAt !== null && dueAt < first) first = dueAt;
    this.#callOffLook();
    this.#lookAt = Number.POSITIVE_INFINITY;
    if (first < Number.POSITIVE_INFINITY) this.#scheduleAt(first);
  }

  #scheduleAt(at: number): void {
    if (at >= this.#lookAt || this.#ended) return;
    this.#callOffLook();
    this.#lookAt = at;
    const { clock } = this.#options;
    this.#callOffLook = clock.after(Math.max(0, at - clock.monotonic()), () => {
      this.#lookAt = Number.POSITIVE_INFINITY;
      this.#looking ??= this.#look()
        .catch((error: unknown) => this.#options.log.error({ error }, 'what was changed could not be looked at'))
        .finally(() => {
          this.#looking = null;
        });
    });
  }

  async #look(): Promise<void> {
    const { engine, clock, log } = this.#options;
    const now = clock.monotonic();
    const due = [...this.#paths.values()].filter(({ dueAt }) => dueAt !== null && dueAt <= now);
    // From here on a change counts anew.
    for (const path of due) path.dueAt = null;
    const looks = await engine.look(new Set(due.flatMap(({ keys }) => keys)));
    if (this.#ended) return;
    if (looks === null) {
      // Something runs. Its end is told, and then it is their turn, unless it ended just now.
      for (const path of due) path.dueAt ??= now;
      this.#scheduleAt(clock.monotonic() + busyMs);
      return;
    }
    const lookedAt = clock.monotonic();
    for (const path of due) {
      path.looks++;
      path.lookedAt = lookedAt;
      // What happened during the look waits like any other.
      if (path.dueAt !== null) path.dueAt = Math.max(path.dueAt, lookedAt + waitAfter(path.looks));
    }
    const news: string[] = [];
    for (const [key, look] of looks) {
      const known = this.#known.get(key);
      if (look === (known ?? '')) {
        this.#known.set(key, look);
        this.#wanted.delete(key);
      } else if (this.#wanted.get(key) !== look) {
        this.#wanted.set(key, look);
        news.push(key);
      }
    }
    if (news.length > 0) {
      log.info({ resources: named(news), count: news.length }, 'what was applied has been changed here');
      this.#hint();
    }
    this.#schedule();
  }

  #hint(): void {
    this.#callOffHint();
    if (this.#wanted.size === 0 || this.#ended) return;
    this.#options.hint(named([...this.#wanted.keys()]));
    this.#callOffHint = this.#options.clock.after(againMs, () => this.#hint());
  }
}

const named = (keys: readonly string[]): string[] =>
  keys
    .slice(0, mostKeys)
    // The cut may go through a character.
    .map((key) => (key.length > longestKey ? `${key.slice(0, longestKey - 1).toWellFormed()}…` : key));

const unseen: Path = { keys: [], looks: 0, lookedAt: Number.NEGATIVE_INFINITY, dueAt: null };

/** How long after a look a path is looked at again. */
export const waitAfter = (looks: number): number =>
  looks < freeLooks ? 0 : Math.min(mostWaitMs, firstWaitMs * 2 ** Math.min(20, looks - freeLooks));
