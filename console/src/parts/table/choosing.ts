/** Selects rows by their keys. All functions return a new set. */

export function toggled(chosen: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return next;
}

/**
 * Applies the state of the anchor (selected or not) to all rows up to this one. Other rows keep their state.
 * @param keys in display order
 * @param anchor the last toggled row; if it is no longer shown, only this row is toggled
 */
export function rangeChosen(
  keys: readonly string[],
  chosen: ReadonlySet<string>,
  anchor: string | null,
  to: string,
): ReadonlySet<string> {
  const from = anchor === null ? -1 : keys.indexOf(anchor);
  const end = keys.indexOf(to);
  if (from === -1 || end === -1) return toggled(chosen, to);
  const on = chosen.has(anchor as string);
  const next = new Set(chosen);
  for (const key of keys.slice(Math.min(from, end), Math.max(from, end) + 1)) {
    if (on) next.add(key);
    else next.delete(key);
  }
  return next;
}

/** Selects all shown rows, or deselects them if all are selected. Rows that are not shown keep their state. */
export function allToggled(keys: readonly string[], chosen: ReadonlySet<string>): ReadonlySet<string> {
  const next = new Set(chosen);
  const all = keys.every((key) => chosen.has(key));
  for (const key of keys) {
    if (all) next.delete(key);
    else next.add(key);
  }
  return next;
}
