/** Things that all have the same time to do something, without a timer each. */
export class Deadlines<T> {
  private readonly allowedMs: number;
  /** When each was added; so in the order in which they expire. */
  private readonly addedAt = new Map<T, number>();

  /** @param allowedMs what each may take */
  constructor(allowedMs: number) {
    this.allowedMs = allowedMs;
  }

  /** @param now milliseconds of the same clock as in `expired` */
  add(item: T, now: number): void {
    this.addedAt.set(item, now);
  }

  delete(item: T): void {
    this.addedAt.delete(item);
  }

  /** Takes out those whose time is up. */
  expired(now: number): T[] {
    const items: T[] = [];
    for (const [item, addedAt] of this.addedAt) {
      if (now - addedAt < this.allowedMs) break;
      items.push(item);
    }
    for (const item of items) this.addedAt.delete(item);
    return items;
  }

  /** Takes out all. */
  drain(): T[] {
    const items = [...this.addedAt.keys()];
    this.addedAt.clear();
    return items;
  }
}
