import { hostname } from 'node:os';
import type { Clock } from '../../../lib/src/clock.ts';
import { PathWatch } from '../host/files/path-watch.ts';
import { namesIn, stampOf } from '../host/read-system.ts';
import { gatherFacts } from './facts.ts';

/** Poll interval. Needed because not every source of attributes can be watched. */
const intervalMs = 10 * 60_000;
/** Debounce interval, because saving a file causes a burst of events. */
const debounceMs = 100;
/**
 * Minimum time between collections caused by events, so that a constantly changing file does not keep the agent busy.
 */
const minPauseMs = 500;
/**
 * Delay before a check that follows each collection, because tools write /etc/hostname before they set the hostname in
 * the kernel.
 */
const recheckMs = 1000;

/** Sources of built-in attributes that may change while an agent runs. */
const watched = [
  '/etc/hostname',
  '/etc/hosts',
  '/etc/localtime',
  '/etc/timezone',
  '/etc/os-release',
  '/usr/lib/os-release',
];

export interface MachineFactsOptions {
  factsDir: string;
  hostname: string | null;
  clock: Clock;
  log: {
    debug(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
  /** Directory that contains /etc, /proc, /run, and /sys, for tests. */
  root?: string;
}

/** This machine's current attributes, collected at startup and shortly after each change. */
export class MachineFacts {
  attributes: Record<string, string> = {};
  readonly #options: MachineFactsOptions;
  #reportedProblems = new Set<string>();
  #stamp = '';
  #changed: (() => void) | null = null;
  #gathering: Promise<boolean> | null = null;
  #again = false;
  /** Whether events occurred during the collection, which a custom program may have caused. */
  #hasEvents = false;
  /** Number of consecutive collections with such events. */
  #busyRounds = 0;
  #gatheredAt = Number.NEGATIVE_INFINITY;
  #cancelSoon = () => {};
  #cancelRecheck = () => {};
  #cancelLater = () => {};
  #cancelInterval = () => {};
  #watch: PathWatch | null = null;

  constructor(options: MachineFactsOptions) {
    this.#options = options;
  }

  /** Collects the attributes. @returns whether an attribute has changed */
  async gather(): Promise<boolean> {
    const { log, factsDir, root = '' } = this.#options;
    const reportedProblems = new Set<string>();
    const system = systemStamp(root);
    const gathered = await gatherFacts({
      ...this.#options,
      warn: (file, problem) => {
        const what = `${file}\n${problem}`;
        if (!this.#reportedProblems.has(what) && !reportedProblems.has(what))
          log.warn({ file, problem }, 'skipped a custom fact');
        reportedProblems.add(what);
      },
    });
    this.#reportedProblems = reportedProblems;
    // Read after the programs have run, so that their own writes do not cause another collection.
    this.#stamp = `${system}\n${ownerStamp(factsDir)}`;
    this.#gatheredAt = this.#options.clock.monotonic();
    if (JSON.stringify(gathered) === JSON.stringify(this.attributes)) return false;
    this.attributes = gathered;
    return true;
  }

  /** Starts watching for changes. */
  follow(changed: () => void): void {
    const { clock, log, factsDir, root = '' } = this.#options;
    this.#changed = changed;
    this.#watch = new PathWatch({
      clock,
      changed: () => this.#scheduleSoon(),
      warn: (fields, message) => log.debug(fields, message),
    });
    this.#watch.set([...watched.map((path) => root + path), `${factsDir}/`]);
    this.#scheduleInterval();
    // Detects changes between the first collection and the start of the watch.
    this.#scheduleSoon();
  }

  /** Collects the attributes again, for example after an apply that may have changed them. */
  refresh(): void {
    if (this.#changed === null) return;
    if (this.#gathering !== null) {
      this.#again = true;
      return;
    }
    this.#gathering = this.gather();
    this.#gathering
      .then((differs) => {
        if (differs) this.#changed?.();
      })
      .catch((error: unknown) => this.#options.log.warn({ error }, "failed to collect this machine's attributes"))
      .finally(() => {
        this.#gathering = null;
        const hasEvents = this.#hasEvents;
        this.#hasEvents = false;
        if (this.#again) {
          this.#again = false;
          return this.refresh();
        }
        if (!hasEvents) this.#busyRounds = 0;
        // Backs off, because a program that writes to its own directory would otherwise run in an endless loop.
        else if (this.#changed !== null)
          this.#scheduleLater(Math.min(minPauseMs * 2 ** ++this.#busyRounds, intervalMs));
        this.#scheduleRecheck();
      });
  }

  end(): void {
    this.#changed = null;
    this.#watch?.end();
    this.#cancelSoon();
    this.#cancelRecheck();
    this.#cancelLater();
    this.#cancelInterval();
  }

  #scheduleSoon(): void {
    const { clock } = this.#options;
    this.#cancelSoon();
    const wait = Math.max(debounceMs, this.#gatheredAt + minPauseMs - clock.monotonic());
    this.#cancelSoon = clock.after(wait, () => {
      if (this.#gathering !== null) this.#hasEvents = true;
      else if (this.#isOutdated()) this.refresh();
    });
  }

  #scheduleLater(ms: number): void {
    this.#cancelLater();
    this.#cancelLater = this.#options.clock.after(ms, () => this.refresh());
  }

  #scheduleRecheck(): void {
    if (this.#changed === null) return;
    this.#cancelRecheck();
    this.#cancelRecheck = this.#options.clock.after(recheckMs, () => {
      if (this.#isOutdated()) this.refresh();
    });
  }

  #scheduleInterval(): void {
    this.#cancelInterval = this.#options.clock.after(intervalMs, () => {
      this.refresh();
      this.#scheduleInterval();
    });
  }

  #isOutdated(): boolean {
    const { factsDir, root = '' } = this.#options;
    return `${systemStamp(root)}\n${ownerStamp(factsDir)}` !== this.#stamp;
  }
}

const systemStamp = (root: string): string =>
  [hostname(), ...watched.map((path) => `${path} ${stampOf(root + path)}`)].join('\n');

const ownerStamp = (factsDir: string): string =>
  namesIn(factsDir)
    .map((name) => `${name} ${stampOf(`${factsDir}/${name}`)}`)
    .join('\n');
