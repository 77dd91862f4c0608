import type { Key } from './keys.ts';

/**
 * Marks answers as stale in batches: soon after the first event, and then no more often than every two seconds for one
 * answer, however many events there are. Nothing is lost: what came in between is marked at the end of that time.
 */

const firstMs = 60;
const spacingMs = 2_000;

export interface StalenessParts {
  readonly mark: (key: Key) => void;
  /** Calls back after so many milliseconds; what it gives back calls that off. */
  readonly after: (ms: number, act: () => void) => () => void;
}

export function createStaleness({ mark, after }: StalenessParts) {
  /** By text: the key, whether it was named since it was last marked, and how to call off what waits. */
  const pending = new Map<string, { named: boolean; callOff: () => void }>();

  const markSoon = (text: string, key: Key, ms: number, named: boolean) => {
    const entry = { named, callOff: () => {} };
    entry.callOff = after(ms, () => {
      if (!entry.named) return void pending.delete(text);
      mark(key);
      markSoon(text, key, spacingMs, false);
    });
    pending.set(text, entry);
  };

  return {
    add(key: Key): void {
      const text = JSON.stringify(key);
      const entry = pending.get(text);
      if (entry === undefined) markSoon(text, key, firstMs, true);
      else entry.named = true;
    },
    clear(): void {
      for (const { callOff } of pending.values()) callOff();
      pending.clear();
    },
  };
}
