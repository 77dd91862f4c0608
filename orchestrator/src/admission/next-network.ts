/**
 * Chooses the network for the next slot: the network with the fewest slots or, if several have equally few, the first
 * of them. Peers that occupy slots silently can therefore use only their network's share.
 * @param waiting networks with waiting sockets, in order
 * @param slotsOf number of slots per network, where a missing entry means 0
 * @param mayBegin reports whether a network may start now
 * @returns null if no network may start
 */
export function nextNetwork(
  waiting: Iterable<string>,
  slotsOf: ReadonlyMap<string, number>,
  mayBegin: (network: string) => boolean,
): string | null {
  let next: string | null = null;
  let fewest = Number.POSITIVE_INFINITY;
  for (const network of waiting) {
    const slots = slotsOf.get(network) ?? 0;
    if (slots >= fewest || !mayBegin(network)) continue;
    if (slots === 0) return network;
    next = network;
    fewest = slots;
  }
  return next;
}
