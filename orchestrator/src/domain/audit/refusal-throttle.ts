/**
 * What was refused, told in few words: the first time at once, then once an hour how often since. Whoever is refused may
 * be hostile and have any number of keys and addresses, so there is a bounded number of entries, each for at least an
 * hour; what finds no room is counted together. Few entries also mean few events, hence little on the disk.
 */

/**
 * Who was refused. Strangers must not take the room of those who have proven who they are, nor those who say that they are
 * one operator that of another.
 */
export type Refused = 'stranger' | 'claimed' | 'signed_in' | 'agent' | 'unknown_agent';

/** Entries for all of a kind; `claimed` and `signed_in` for each operator, of whom there are as many as admins add. */
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
  /** Stands for all that found no room. */
  readonly crowd: boolean;
  /** Since when `repeated` counts. */
  since: number;
  repeated: number;
}

/** What is to be told of now. */
export interface Telling<T> {
  readonly what: T;
  /** How often it was repeated since then; 0: it is told of for the first time. */
  readonly count: number;
  readonly since: number;
  /** It could not be told: it is still to be. */
  readonly untold: () => void;
}

export interface RefusalBook<T> {
  /**
   * @param whose the operator who is refused, or is said to be; empty for the others
   * @param same  what makes two refusals the same one
   * @param crowd what is told of in its place when there is no room
   * @returns null: it is counted
   */
  note(who: Refused, whose: string, same: string, what: T, crowd: () => T, now: number): Telling<T> | null;
  /** What was repeated until its hour was over; what was not is forgotten. */
  due(now: number): Telling<T>[];
  /** Whatever was repeated, for an end. */
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
    // The clock was set back: the hour begins anew.
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
