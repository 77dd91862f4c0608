/** One at a time for each key; a few may wait. */
export class Turns {
  private readonly limit: number;
  private readonly lines = new Map<string, (() => void)[]>();

  /** @param limit how many may hold or wait for one key */
  constructor(limit: number) {
    this.limit = limit;
  }

  /**
   * Resolves when it is the caller's turn.
   * @returns ends the turn, or null when too many wait already
   */
  async take(key: string): Promise<(() => void) | null> {
    const line = this.lines.get(key);
    if (!line) this.lines.set(key, []);
    else if (line.length + 1 >= this.limit) return null;
    else await new Promise<void>((resolve) => line.push(resolve));
    return () => {
      const next = this.lines.get(key)!.shift();
      if (next) next();
      else this.lines.delete(key);
    };
  }
}
