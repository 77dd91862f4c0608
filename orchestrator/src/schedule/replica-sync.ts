import type { Clock } from '../../../lib/src/clock.ts';
import { type FollowerParts, ReplicaFollower } from '../domain/presence/follow-replicas.ts';

/**
 * Reads the changes by other replicas about once a second, and soon after their hints, which arrive only through NATS.
 */

const intervalMs = 1_000;
/** Minimum milliseconds between the start of a turn and the start of the next turn if a hint requests it. */
const hintedMs = 100;

export interface ReplicaSync {
  stop(): Promise<void>;
}

export function startReplicaSync(parts: FollowerParts & { readonly clock: Clock }): ReplicaSync {
  const sync = new Sync(parts, new ReplicaFollower(parts));
  parts.context.log.info({}, 'sharing the database with other replicas');
  return sync;
}

class Sync implements ReplicaSync {
  readonly #clock: Clock;
  readonly #work: ReplicaFollower;
  readonly #unsubscribe: () => void;
  readonly #stopAnswering: () => void;
  #stopped = false;
  #cancelTimer = () => {};
  #running: Promise<void> | null = null;
  /** Monotonic milliseconds at which the last turn and the last complete turn began. */
  #begunAt: number;
  #completeAt: number;
  /** The reads that hints request. */
  #wanted: 'nothing' | 'links' | 'all' = 'nothing';

  constructor(
    { context, clock }: { readonly context: FollowerParts['context']; readonly clock: Clock },
    work: ReplicaFollower,
  ) {
    this.#clock = clock;
    this.#work = work;
    this.#begunAt = clock.monotonic();
    this.#completeAt = this.#begunAt;
    this.#unsubscribe = context.bus.subscribe(({ type }) => {
      if (type === 'hints_lost') this.#want('all');
      else if (type === 'links_changed') this.#want('links');
    });
    this.#stopAnswering = work.answerProbes();
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe();
    this.#stopAnswering();
    this.#cancelTimer();
    await this.#running;
  }

  #want(what: 'links' | 'all'): void {
    if (this.#wanted === 'all' || this.#wanted === what) return;
    this.#wanted = what;
    if (this.#running === null) this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped) return;
    const dueAt = this.#completeAt + intervalMs;
    const at = this.#wanted === 'nothing' ? dueAt : Math.min(dueAt, this.#begunAt + hintedMs);
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(Math.max(0, at - this.#clock.monotonic()), () => {
      this.#running = this.#turn().then(() => {
        this.#running = null;
        this.#schedule();
      });
    });
  }

  #turn(): Promise<void> {
    const now = this.#clock.monotonic();
    this.#begunAt = now;
    const isComplete = this.#wanted === 'all' || now >= this.#completeAt + intervalMs;
    this.#wanted = 'nothing';
    if (!isComplete) return this.#work.turnOfLinks();
    this.#completeAt = now;
    return this.#work.turn();
  }
}
