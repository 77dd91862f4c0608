import type { Clock } from '../../../lib/src/clock.ts';
import { hangUpAll, killAll, membersOf, type ProcessSession } from '../host/processes/process-session.ts';

/** Milliseconds that processes have to exit after their terminal was hung up. */
const graceMs = 2_000;
/**
 * Milliseconds before the agent sends its own SIGHUP, so that an editor that received the kernel's SIGHUP has time to
 * save.
 */
const hangUpDelayMs = 1_000;
/** Milliseconds that processes have to exit after SIGKILL; a hanging disk may delay their exit. */
const killTimeoutMs = 2_000;
const pollMs = 100;

interface Case {
  readonly deadline: number;
  isHungUp: boolean;
  done(left: number): void;
}

/** Kills the processes that remain after their terminal was hung up. One scan of all processes serves all terminals. */
export class SessionKiller {
  readonly #clock: Clock;
  readonly #cases = new Map<ProcessSession, Case>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Kills the remaining processes after the grace period. Resolves when none are left, at the latest `killTimeoutMs`
   * after the grace period.
   * @returns the number of processes that could not be killed
   */
  end(session: ProcessSession): Promise<number> {
    return new Promise((done) => {
      this.#cases.set(session, { deadline: this.#clock.monotonic() + graceMs, isHungUp: false, done });
      if (this.#cases.size === 1) this.#schedule();
    });
  }

  #schedule(): void {
    this.#clock.after(pollMs, () => this.#poll());
  }

  #poll(): void {
    const now = this.#clock.monotonic();
    for (const [session, members] of membersOf(this.#cases.keys())) {
      const known = this.#cases.get(session) as Case;
      const { deadline, done } = known;
      const left = members.pids.length;
      if (left > 0 && now < deadline) {
        // The kernel sends SIGHUP only to the shell and the foreground job, and some shells do not pass it on.
        if (!known.isHungUp && now >= deadline - graceMs + hangUpDelayMs) {
          known.isHungUp = true;
          hangUpAll(members);
        }
        continue;
      }
      // Repeats the kill, because a process may have forked since the last scan.
      killAll(members);
      if (left > 0 && now < deadline + killTimeoutMs) continue;
      this.#cases.delete(session);
      done(left);
    }
    if (this.#cases.size > 0) this.#schedule();
  }
}
