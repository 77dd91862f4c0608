/**
 * Chooses the network that gets the next slot: the network with the fewest slots; among equals, the first in order.
 * Peers that silently hold slots for a long time therefore use only their network's share.
 * @param waiting networks with waiting sockets, in order
 * @param held    number of slots of each network; a missing entry is 0
 * @param mayBegin whether a network may start now
 * @returns null when no network may start
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
