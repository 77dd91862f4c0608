import type { Clock } from '../host/clock.ts';
import { killAll, membersOf, type ProcessSession } from '../host/process-session.ts';

/** How long what runs in a terminal may take to end when that hangs up. Milliseconds. */
const graceMs = 2_000;
const lookMs = 100;

interface Case {
  deadline: number;
  done(): void;
}

/** Ends what is left of terminals that have been hung up, with one look at the processes of the machine for all. */
export class PutAway {
  readonly #clock: Clock;
  readonly #cases = new Map<ProcessSession, Case>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when nothing of it runs any more; after the grace it is made to end. */
  end(session: ProcessSession): Promise<void> {
    return new Promise((done) => {
      this.#cases.set(session, { deadline: this.#clock.monotonic() + graceMs, done });
      if (this.#cases.size === 1) this.#later();
    });
  }

  #later(): void {
    this.#clock.after(lookMs, () => this.#look());
  }

  #look(): void {
    const now = this.#clock.monotonic();
    for (const [session, pids] of membersOf(this.#cases.keys())) {
      const { deadline, done } = this.#cases.get(session) as Case;
      if (pids.length > 0 && now < deadline) continue;
      killAll(pids);
      this.#cases.delete(session);
      done();
    }
    if (this.#cases.size > 0) this.#later();
  }
}
