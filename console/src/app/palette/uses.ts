/** Records which entries of the palette the operator chooses, in this browser. */

const key = 'muster.palette';
/** Number of recorded choices. Older choices are discarded. */
const maxChoices = 100;

/** Returns the ids of chosen entries, latest first. The stored text may be from another version or a manual edit. */
function choices(): string[] {
  try {
    const stored: unknown = JSON.parse(window.localStorage.getItem(key) ?? '[]');
    return Array.isArray(stored) ? stored.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

/** Returns a function that returns how often an entry was chosen. */
export function readUses(): (id: string) => number {
  const counts = new Map<string, number>();
  for (const id of choices()) counts.set(id, (counts.get(id) ?? 0) + 1);
  return (id) => counts.get(id) ?? 0;
}

export function recordUse(id: string): void {
  try {
    window.localStorage.setItem(key, JSON.stringify([id, ...choices()].slice(0, maxChoices)));
  } catch {
    // Local storage is unavailable, so entries are ranked only by match and name.
  }
}
