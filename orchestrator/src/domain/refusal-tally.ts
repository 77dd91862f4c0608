/**
 * How many refused sign-ins are written down one by one. Anybody can be refused, from as many addresses as they have, and
 * each line of the audit log is kept for months.
 */

/** So many at once, and then so many an hour. */
const burst = 300;
const perHour = 300;
const hourMs = 3_600_000;

interface Tally {
  left: number;
  at: number;
  /** Not written since the last that was. */
  withheld: number;
}

export class RefusalTally {
  readonly #tallies = new Map<string, Tally>();

  /**
   * Counts a refusal.
   * @param of whose sign-in it would have been; those of one do not crowd out those of another
   * @param now Unix milliseconds
   * @returns how many were not written since the last one; null when this one is not to be written either
   */
  take(of: string, now: number): number | null {
    const tally = this.#tallies.get(of) ?? { left: burst, at: now, withheld: 0 };
    this.#tallies.set(of, tally);
    tally.left = Math.min(burst, tally.left + (Math.max(0, now - tally.at) * perHour) / hourMs);
    tally.at = now;
    if (tally.left < 1) {
      tally.withheld++;
      return null;
    }
    tally.left--;
    const { withheld } = tally;
    tally.withheld = 0;
    return withheld;
  }
}
