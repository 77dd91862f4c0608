/** Deadlines of items that all have the same time limit, without a timer for each. */
export class Deadlines<T> {
  private readonly allowedMs: number;
  /** Time of addition, in the order of expiry. */
  private readonly addedAt = new Map<T, number>();

  /** @param allowedMs time limit of each item */
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

  /** Removes and returns expired items. */
  expired(now: number): T[] {
    const items: T[] = [];
    for (const [item, addedAt] of this.addedAt) {
      if (now - addedAt < this.allowedMs) break;
      items.push(item);
    }
    for (const item of items) this.addedAt.delete(item);
    return items;
  }

  /** Removes and returns all items. */
  drain(): T[] {
    const items = [...this.addedAt.keys()];
    this.addedAt.clear();
    return items;
  }
}
