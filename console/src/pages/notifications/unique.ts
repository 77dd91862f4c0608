/** The first of those that have the same id. */
export function uniqueById<T extends { readonly id: string }>(things: readonly T[]): T[] {
  const seen = new Set<string>();
  return things.filter(({ id }) => !seen.has(id) && seen.add(id));
}
