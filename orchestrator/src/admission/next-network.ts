/**
 * Which network has the next place: of those that may, the one with the fewest places; among equals the first in turn.
 * Peers that hold their places long, in silence, so take no more of them than their network's share.
 * @param waiting networks with sockets that wait, in turn
 * @param held    places that each network has; none where it is missing
 * @param mayBegin whether a network's turn may come now
 * @returns null when no network may have one
 */
export function nextNetwork(
  waiting: Iterable<string>,
  held: ReadonlyMap<string, number>,
  mayBegin: (network: string) => boolean,
): string | null {
  let next: string | null = null;
  let fewest = Number.POSITIVE_INFINITY;
  for (const network of waiting) {
    const places = held.get(network) ?? 0;
    if (places >= fewest || !mayBegin(network)) continue;
    if (places === 0) return network;
    next = network;
    fewest = places;
  }
  return next;
}
