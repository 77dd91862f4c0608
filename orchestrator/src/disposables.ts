/** What a start has taken hold of, to be let go of in the opposite order: when it stops, or when the rest of it fails. */
export class Held {
  #ends: (() => unknown)[] = [];

  /** @param end lets go of what was taken hold of just now */
  add(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Lets go of everything, once, also of what is left when something fails on the way. @throws the first failure */
  async letGo(): Promise<void> {
    const ends = this.#ends.reverse();
    this.#ends = [];
    const failures: unknown[] = [];
    for (const end of ends)
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
  }
}
