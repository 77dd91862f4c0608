import type { Clock } from '../../../lib/src/clock.ts';
import { hangUpAll, killAll, membersOf, type ProcessSession } from '../host/processes/process-session.ts';

/** How long what runs in a terminal may take to end when that hangs up. Milliseconds. */
const graceMs = 2_000;
/** What is left by then is told by us: not so soon that an editor which was told, and saves, is disturbed. */
const toldMs = 1_000;
/** How long it may take to end when it is killed: what waits for a disk that hangs does not. Milliseconds. */
const killedMs = 2_000;
const lookMs = 100;

interface Case {
  readonly deadline: number;
  isHungUp: boolean;
  done(left: number): void;
}

/** Ends what is left of terminals that have been hung up, with one look at the processes of the machine for all. */
export class PutAway {
  readonly #clock: Clock;
  readonly #cases = new Map<ProcessSession, Case>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * After the grace what still runs is killed.
   * @returns how many processes are left even so; once there are none, or they have been given up
   */
  end(session: ProcessSession): Promise<number> {
    return new Promise((done) => {
      this.#cases.set(session, { deadline: this.#clock.monotonic() + graceMs, isHungUp: false, done });
      if (this.#cases.size === 1) this.#later();
    });
  }

  #later(): void {
    this.#clock.after(lookMs, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.monotonic();
    for (const [session, members] of membersOf(this.#cases.keys())) {
      const known = this.#cases.get(session) as Case;
      const { deadline, done } = known;
      const left = members.pids.length;
      if (left > 0 && now < deadline) {
        // The kernel tells the shell and what is in the foreground, and not every shell its jobs.
        if (!known.isHungUp && now >= deadline - graceMs + toldMs) {
          known.isHungUp = true;
          hangUpAll(members);
        }
        continue;
      }
      // Again and again: it may have made others meanwhile.
      killAll(members);
      if (left > 0 && now < deadline + killedMs) continue;
      this.#cases.delete(session);
      done(left);
    }
    if (this.#cases.size > 0) this.#later();
  }
}
