/** Resources acquired during the start. They are released in reverse order at the stop, or when the start fails. */
export class Held {
  #ends: (() => unknown)[] = [];

  /** @param end releases the resource */
  add(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Releases everything once, and continues after a failure. @throws the first failure */
  async dispose(): Promise<void> {
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
