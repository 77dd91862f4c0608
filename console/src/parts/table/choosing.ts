/** Which rows are chosen, decided on keys in the order in which they are shown. Pure. */

/** One more, or one fewer. */
export function toggled(chosen: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(chosen);
  if (!next.delete(key)) next.add(key);
  return next;
}

/**
 * All from the row that was chosen last to this one become what that one is; what was chosen elsewhere stays.
 * @param anchor the row that was chosen or freed last; when it is no longer shown, only this row changes
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

/** All that are shown, or none of them when they all were. What is chosen and not shown stays chosen. */
export function allToggled(keys: readonly string[], chosen: ReadonlySet<string>): ReadonlySet<string> {
  const next = new Set(chosen);
  const all = keys.every((key) => chosen.has(key));
  for (const key of keys) {
    if (all) next.delete(key);
    else next.add(key);
  }
  return next;
}
