/**
 * Calls `act` for every item, with at most `atOnce` concurrent calls. Continues after failures.
 * @param onProgress called with the number of finished items
 * @returns the failed items, in the order of `items`
 */
export async function eachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  act: (item: Item) => Promise<unknown>,
  onProgress: (count: number) => void,
): Promise<{ item: Item; error: unknown }[]> {
  const errors = new Map<Item, unknown>();
  let next = 0;
  let count = 0;
  const work = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) {
      try {
        await act(item);
      } catch (error) {
        errors.set(item, error);
      }
      onProgress(++count);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return items.filter((item) => errors.has(item)).map((item) => ({ item, error: errors.get(item) }));
}
