/**
 * Throttles audit events for refusals. The first refusal is recorded immediately; repetitions are counted and recorded
 * hourly. A refused party may be hostile and have any number of keys and addresses. The number of entries is therefore
 * bounded, and refusals beyond the bound share one count. Each entry exists for at least an hour, so the bound also
 * limits the number of events.
 */

/**
 * Category of the refused party. Each category has its own bound, so that unknown parties do not use up the entries for
 * authenticated parties. Likewise, clients that claim to be an operator do not use up the entries of other operators.
 */
export type Refused = 'stranger' | 'claimed' | 'signed_in' | 'agent' | 'unknown_agent';

/** Maximum number of entries per category; for `claimed` and `signed_in`, per operator. */
export const maxEntries: Readonly<Record<Refused, number>> = {
  stranger: 50,
  claimed: 20,
  signed_in: 60,
  agent: 200,
  unknown_agent: 50,
};
export const refusalsEveryMs = 3_600_000;

interface Entry<T> {
  readonly group: string;
  readonly what: T;
  /** Whether the entry counts all refusals beyond the bound together. */
  readonly crowd: boolean;
  /** Unix milliseconds since which `repeated` is counted. */
  since: number;
  repeated: number;
}

export interface DueRefusal<T> {
  readonly what: T;
  /** Number of repetitions since `since`; 0 for the first refusal. */
  readonly count: number;
  readonly since: number;
  /** Reverts the count. Call this if the refusal could not be written, so that it is recorded later. */
  readonly revert: () => void;
}

export interface RefusalBook<T> {
  /**
   * Counts a refusal.
   * @param whose ID of the refused operator, or of the operator that the client claims to be; empty for other parties
   * @param same key that identifies equal refusals
   * @param crowd returns the refusal that represents all refusals beyond the bound
   * @returns the refusal to record now; null if the refusal is only counted
   */
  note(who: Refused, whose: string, same: string, what: T, crowd: () => T, now: number): DueRefusal<T> | null;
  /** Returns the repeated refusals whose hour has elapsed. Drops entries without repetitions. */
  due(now: number): DueRefusal<T>[];
  /** Returns all repeated refusals, to record them at shutdown. */
  rest(now: number): DueRefusal<T>[];
  readonly size: number;
}

export function createRefusalBook<T>(): RefusalBook<T> {
  const entries = new Map<string, Entry<T>>();
  const taken = new Map<string, number>();

  const forget = (key: string, entry: Entry<T>) => {
    if (entries.get(key) !== entry) return;
    entries.delete(key);
    if (entry.crowd) return;
    const left = (taken.get(entry.group) ?? 1) - 1;
    if (left === 0) taken.delete(entry.group);
    else taken.set(entry.group, left);
  };
  const isOver = (entry: Entry<T>, now: number): boolean => {
    // The clock was set back, so the hour starts over.
    if (entry.since > now) entry.since = now;
    return now - entry.since >= refusalsEveryMs;
  };
  const repeated = (entry: Entry<T>, now: number): DueRefusal<T> => {
    const { what, repeated: count, since } = entry;
    entry.repeated = 0;
    entry.since = now;
    const revert = () => {
      entry.repeated += count;
      entry.since = Math.min(since, entry.since);
    };
    return { what, count, since, revert };
  };

  return {
    note(who, whose, same, what, crowd, now) {
      const group = `${who} ${whose}`;
      const own = `${group} ${same}`;
      const full = !entries.has(own) && (taken.get(group) ?? 0) >= maxEntries[who];
      const key = full ? group : own;
      const known = entries.get(key);
      if (known) {
        known.repeated++;
        return isOver(known, now) ? repeated(known, now) : null;
      }
      const entry = { group, what: full ? crowd() : what, crowd: full, since: now, repeated: 0 };
      entries.set(key, entry);
      if (!full) taken.set(group, (taken.get(group) ?? 0) + 1);
      return { what: entry.what, count: 0, since: now, revert: () => forget(key, entry) };
    },

    due(now) {
      const due: DueRefusal<T>[] = [];
      for (const [key, entry] of entries) {
        if (!isOver(entry, now)) continue;
        if (entry.repeated > 0) due.push(repeated(entry, now));
        else forget(key, entry);
      }
      return due;
    },

    rest: (now) => [...entries.values()].filter((entry) => entry.repeated > 0).map((entry) => repeated(entry, now)),

    get size() {
      return entries.size;
    },
  };
}
