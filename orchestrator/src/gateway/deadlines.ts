/** Tracks deadlines for items that share one time limit, without a timer for each item. */
export class Deadlines<T> {
  private readonly allowedMs: number;
  /** The time at which each item was added. Items expire in insertion order. */
  private readonly addedAt = new Map<T, number>();

  constructor(allowedMs: number) {
    this.allowedMs = allowedMs;
  }

  /** @param now milliseconds on the clock whose time is also passed to `expired` */
  add(item: T, now: number): void {
    this.addedAt.set(item, now);
  }

  delete(item: T): void {
    this.addedAt.delete(item);
  }

  expired(now: number): T[] {
    const items: T[] = [];
    for (const [item, addedAt] of this.addedAt) {
      if (now - addedAt < this.allowedMs) break;
      items.push(item);
    }
    for (const item of items) this.addedAt.delete(item);
    return items;
  }

  drain(): T[] {
    const items = [...this.addedAt.keys()];
    this.addedAt.clear();
    return items;
  }
}
