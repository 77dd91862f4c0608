import type { Key } from '../query-keys.ts';

/**
 * Marks queries as stale in batches: 60 ms after the first event, then at most every two seconds per query key. Keys of
 * events within an interval are marked at its end.
 */

const firstMs = 60;
const intervalMs = 2_000;

export interface StalenessParts {
  /** @param since time of the last event for the key */
  readonly mark: (key: Key, since: number) => void;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Calls `act` after `ms` milliseconds. The returned function cancels the call. */
  readonly after: (ms: number, act: () => void) => () => void;
}

interface Entry {
  readonly key: Key;
  /** Whether an event named the key since it was last marked. */
  named: boolean;
  namedAt: number;
  /** Whether a broader key marked this key during the interval. */
  covered: boolean;
  /** Whether the delay of this entry is `firstMs` rather than the full interval. */
  readonly soon: boolean;
  cancel: () => void;
}

/** Reports whether marking the first key also marks the second. */
const covers = (wide: Key, narrow: Key): boolean =>
  wide.length < narrow.length && wide.every((part, index) => part === narrow[index]);

export function createStaleness({ mark, now, after }: StalenessParts) {
  /** Keys are query keys as JSON. */
  const pending = new Map<string, Entry>();

  const markSoon = (text: string, key: Key, ms: number, named: boolean) => {
    const entry: Entry = { key, named, namedAt: now(), covered: false, soon: ms === firstMs, cancel: () => {} };
    entry.cancel = after(ms, () => {
      if (!entry.named && !entry.covered) return void pending.delete(text);
      // A key is not marked if a broader key is pending, because its queries would be fetched twice.
      const others = [...pending.values()].filter((other) => other !== entry && other.named);
      if (entry.named && !others.some((other) => other.soon && covers(other.key, key))) {
        const covered = others.filter((other) => covers(key, other.key));
        mark(key, Math.max(entry.namedAt, ...covered.map(({ namedAt }) => namedAt)));
        for (const other of covered) Object.assign(other, { named: false, covered: true });
      }
      markSoon(text, key, intervalMs, false);
    });
    pending.set(text, entry);
  };

  return {
    add(key: Key): void {
      const text = JSON.stringify(key);
      const entry = pending.get(text);
      if (entry === undefined) markSoon(text, key, firstMs, true);
      else Object.assign(entry, { named: true, namedAt: now() });
    },
    clear(): void {
      for (const { cancel } of pending.values()) cancel();
      pending.clear();
    },
  };
}
