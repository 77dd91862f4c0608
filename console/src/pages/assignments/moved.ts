/** @returns the list with one of them at another place; as it is when there is no such one */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  if (from < 0 || from >= list.length) return [...list];
  return list.toSpliced(from, 1).toSpliced(Math.max(0, to), 0, list[from] as T);
}
