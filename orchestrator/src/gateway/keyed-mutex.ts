/** A mutex per key with a limited number of waiters. */
export class Turns {
  private readonly limit: number;
  private readonly lines = new Map<string, (() => void)[]>();

  /** @param limit maximum number of callers per key that hold the lock or wait for it */
  constructor(limit: number) {
    this.limit = limit;
  }

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
