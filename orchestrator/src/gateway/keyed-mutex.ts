/** A mutex per key with a limited number of waiters. */
export class Turns {
  private readonly limit: number;
  private readonly lines = new Map<string, (() => void)[]>();

  /** @param limit maximum number of callers that hold or await one key */
  constructor(limit: number) {
    this.limit = limit;
  }

  /** Locks a key. @returns a function that unlocks it; null if too many callers wait */
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
