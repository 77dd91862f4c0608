import type { Context } from '../shared/context.ts';

/** Serializes the work on each run, because concurrent passes would act on outdated reads. */
export class RunQueue {
  readonly #advance: (runId: string) => Promise<void>;
  readonly #log: Context['log'];
  readonly #busy = new Map<string, Promise<void>>();
  /** Runs to advance again after the current pass. */
  readonly #again = new Set<string>();
  readonly #due = new Set<string>();
  /** Runs to advance when their delay has elapsed. */
  readonly #gathering = new Set<string>();
  #stopped = false;

  constructor(advance: (runId: string) => Promise<void>, log: Context['log']) {
    this.#advance = advance;
    this.#log = log;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Continues a run now or, if a pass is in progress, once more after it. Does nothing after `stop`. Never rejects. */
  advance(runId: string): Promise<void> {
    const running = this.#busy.get(runId);
    if (running) this.#again.add(runId);
    else if (!this.#stopped) return this.#start(runId, () => this.#advance(runId));
    return running ?? Promise.resolve();
  }

  /**
   * Continues the run once for all outcomes in this event-loop turn or in the next `ms` milliseconds, because a
   * thousand may be committed together.
   */
  advanceLater(runId: string, ms: number): void {
    if (ms > 0) {
      this.#advanceAfter(runId, ms);
      return;
    }
    if (this.#due.size === 0)
      setImmediate(() => {
        const runs = [...this.#due];
        this.#due.clear();
        for (const run of runs) void this.advance(run);
      });
    this.#due.add(runId);
  }

  #advanceAfter(runId: string, ms: number): void {
    if (this.#gathering.has(runId)) return;
    this.#gathering.add(runId);
    setTimeout(() => {
      this.#gathering.delete(runId);
      void this.advance(runId);
    }, ms).unref();
  }

  /** Waits until no other work on the run is in progress, then calls `work`. Never rejects. */
  async exclusively(runId: string, work: () => Promise<void>): Promise<void> {
    while (this.#busy.has(runId)) await this.#busy.get(runId);
    if (!this.#stopped) await this.#start(runId, work);
  }

  /** Waits for passes in progress, and starts no new passes. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#busy.values());
  }

  /** Calls `first`, then advances the run for each request. Never rejects. */
  #start(runId: string, first: () => Promise<void>): Promise<void> {
    const work = (async () => {
      await first();
      while (this.#again.delete(runId) && !this.#stopped) await this.#advance(runId);
    })()
      .catch((error: unknown) => this.#log.error({ err: error, run_id: runId }, 'failed to continue run; will retry'))
      .finally(() => {
        this.#busy.delete(runId);
        this.#again.delete(runId);
      });
    this.#busy.set(runId, work);
    return work;
  }
}
