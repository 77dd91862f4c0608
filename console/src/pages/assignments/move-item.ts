/** Returns a copy of the list with one item moved to another index, or an unchanged copy if `from` is out of range. */
export function moveItem<T>(list: readonly T[], from: number, to: number): T[] {
  if (from < 0 || from >= list.length) return [...list];
  return list.toSpliced(from, 1).toSpliced(Math.max(0, to), 0, list[from] as T);
}
