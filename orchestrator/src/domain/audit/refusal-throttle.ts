/**
 * Throttles audit events for refusals: the first refusal is recorded immediately, repetitions are counted and recorded hourly.
 * A refused party may be hostile and have any number of keys and addresses, so the number of entries is bounded and each
 * lives at least an hour. Refusals beyond the bound are counted together. The bound also limits the events on the disk.
 */

/**
 * Category of the refused party. Each category has its own bound: strangers must not use up the entries of authenticated
 * parties, and clients that claim to be one operator must not use up the entries of another.
 */
export type Refused = 'stranger' | 'claimed' | 'signed_in' | 'agent' | 'unknown_agent';

/** Maximum number of entries of a category; for `claimed` and `signed_in`, of each operator in it. */
export const roomFor: Readonly<Record<Refused, number>> = {
  stranger: 50,
  claimed: 20,
  signed_in: 60,
  agent: 200,
  unknown_agent: 50,
};
export const refusalsEveryMs = 3_600_000;

interface Entry<T> {
  readonly room: string;
  readonly what: T;
  /** Whether the entry counts all refusals beyond the bound. */
  readonly crowd: boolean;
  /** Start of the count in `repeated`. */
  since: number;
  repeated: number;
}

/** A refusal to record now. */
export interface Telling<T> {
  readonly what: T;
  /** Repetitions since `since`; 0 for the first refusal. */
  readonly count: number;
  readonly since: number;
  /** Call it when recording failed, so that the refusal is recorded later. */
  readonly untold: () => void;
}

export interface RefusalBook<T> {
  /**
   * @param whose the id of the operator who is refused, or is claimed; empty for others
   * @param same  key that identifies equal refusals
   * @param crowd recorded instead when the category is full
   * @returns null when the refusal is only counted
   */
  note(who: Refused, whose: string, same: string, what: T, crowd: () => T, now: number): Telling<T> | null;
  /** Repeated refusals whose hour is over. Drops entries without repetitions. */
  due(now: number): Telling<T>[];
  /** All repeated refusals, to record them at shutdown. */
  rest(now: number): Telling<T>[];
  readonly size: number;
}

export function createRefusalBook<T>(): RefusalBook<T> {
  const entries = new Map<string, Entry<T>>();
  const taken = new Map<string, number>();

  const forget = (key: string, entry: Entry<T>) => {
    if (entries.get(key) !== entry) return;
    entries.delete(key);
    if (entry.crowd) return;
    const left = (taken.get(entry.room) ?? 1) - 1;
    if (left === 0) taken.delete(entry.room);
    else taken.set(entry.room, left);
  };
  const isOver = (entry: Entry<T>, now: number): boolean => {
    // The clock was set back, so the hour starts again.
    if (entry.since > now) entry.since = now;
    return now - entry.since >= refusalsEveryMs;
  };
  const repeated = (entry: Entry<T>, now: number): Telling<T> => {
    const { what, repeated: count, since } = entry;
    entry.repeated = 0;
    entry.since = now;
    const untold = () => {
      entry.repeated += count;
      entry.since = Math.min(since, entry.since);
    };
    return { what, count, since, untold };
  };

  return {
    note(who, whose, same, what, crowd, now) {
      const room = `${who} ${whose}`;
      const own = `${room} ${same}`;
      const full = !entries.has(own) && (taken.get(room) ?? 0) >= roomFor[who];
      const key = full ? room : own;
      const known = entries.get(key);
      if (known) {
        known.repeated++;
        return isOver(known, now) ? repeated(known, now) : null;
      }
      const entry = { room, what: full ? crowd() : what, crowd: full, since: now, repeated: 0 };
      entries.set(key, entry);
      if (!full) taken.set(room, (taken.get(room) ?? 0) + 1);
      return { what: entry.what, count: 0, since: now, untold: () => forget(key, entry) };
    },

    due(now) {
      const due: Telling<T>[] = [];
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
