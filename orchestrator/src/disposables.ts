/** Resources to release in reverse order on shutdown, or if startup fails. */
export class Disposables {
  #ends: (() => unknown)[] = [];

  add(end: () => unknown): void {
    this.#ends.push(end);
  }

  /** Releases all resources once, even if some fail. @throws the first error */
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
