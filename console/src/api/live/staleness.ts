import type { Key } from '../query-keys.ts';

/**
 * Marks answers as stale in batches: soon after the first event, and then no more often than every two seconds for one
 * answer, however many events there are. Nothing is lost: what came in between is marked at the end of that time.
 */

const firstMs = 60;
const spacingMs = 2_000;

export interface StalenessParts {
  /** @param since when the last news of it came */
  readonly mark: (key: Key, since: number) => void;
  /** Milliseconds, from whenever. */
  readonly now: () => number;
  /** Calls back after so many milliseconds; what it gives back calls that off. */
  readonly after: (ms: number, act: () => void) => () => void;
}

interface Entry {
  readonly key: Key;
  /** Named since it was last marked. */
  named: boolean;
  namedAt: number;
  /** Marked with another since then. */
  covered: boolean;
  /** Will be marked as soon as anything is. */
  readonly soon: boolean;
  callOff: () => void;
}

/** Marking the first marks the second with it. */
const covers = (wide: Key, narrow: Key): boolean =>
  wide.length < narrow.length && wide.every((part, index) => part === narrow[index]);

export function createStaleness({ mark, now, after }: StalenessParts) {
  /** By the text of the key. */
  const pending = new Map<string, Entry>();

  const markSoon = (text: string, key: Key, ms: number, named: boolean) => {
    const entry: Entry = { key, named, namedAt: now(), covered: false, soon: ms === firstMs, callOff: () => {} };
    entry.callOff = after(ms, () => {
      if (!entry.named && !entry.covered) return void pending.delete(text);
      // What is marked twice is asked for twice.
      const others = [...pending.values()].filter((other) => other !== entry && other.named);
      if (entry.named && !others.some((other) => other.soon && covers(other.key, key))) {
        const covered = others.filter((other) => covers(key, other.key));
        mark(key, Math.max(entry.namedAt, ...covered.map(({ namedAt }) => namedAt)));
        for (const other of covered) Object.assign(other, { named: false, covered: true });
      }
      markSoon(text, key, spacingMs, false);
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
      for (const { callOff } of pending.values()) callOff();
      pending.clear();
    },
  };
}
