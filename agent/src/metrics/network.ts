/** Network traffic: parses /proc/net/dev and chooses which interfaces to count. */

export interface Traffic {
  received: number;
  sent: number;
}

const loopback = 'lo';

/**
 * Parses /proc/net/dev. Skips malformed lines.
 * @returns bytes by interface, without loopback
 */
export function parseTraffic(text: string): Map<string, Traffic> {
  const found = new Map<string, Traffic>();
  for (const line of text.split('\n')) {
    const colon = line.lastIndexOf(':');
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim();
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/);
    const [received, sent] = [fields[0], fields[8]].map((field) =>
      field !== undefined && /^\d{1,20}$/.test(field) ? Number(field) : Number.NaN,
    ) as [number, number];
    if (name === '' || name === loopback || !Number.isSafeInteger(received) || !Number.isSafeInteger(sent)) continue;
    found.set(name, { received, sent });
  }
  return found;
}

/** How an interface relates to other interfaces, from /sys/class/net. */
export interface InterfaceRelations {
  /** Whether the interface is a network card, physical or virtual. */
  hasDevice: boolean;
  /** Interfaces that carry this interface's traffic, if it is a bridge, a bond, or a VLAN. */
  lowers: readonly string[];
  /** Interfaces whose traffic this interface carries. */
  uppers: readonly string[];
  /** Whether this interface belongs exclusively to one of `uppers`. */
  hasMaster: boolean;
}

/**
 * Reads how an interface relates to others.
 * @param entries names in the interface's directory below /sys/class/net
 */
export function relationsOf(hasDevice: boolean, entries: readonly string[]): InterfaceRelations {
  const after = (prefix: string) =>
    entries.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return { hasDevice, lowers: after('lower_'), uppers: after('upper_'), hasMaster: entries.includes('master') };
}

/**
 * Chooses the interfaces that together count every byte once: the network cards. Traffic through bridges, bonds, VLANs,
 * and tunnels also passes through a card, and traffic between containers does not leave the machine. Without a card, as
 * in a container, all interfaces without a lower interface count. On Hyper-V and Azure, and with virtio failover, a
 * card may be the fast path of another card. A fast path does not count, because the other card's counters include its
 * traffic, and the other card remains when the fast path is removed.
 */
export function countedInterfaces(names: Iterable<string>, relations: (name: string) => InterfaceRelations): string[] {
  const known = [...names].map((name) => ({ name, ...relations(name) }));
  const devices = new Set(known.filter(({ hasDevice }) => hasDevice).map(({ name }) => name));
  const fastPaths = new Set(
    known
      .filter(({ hasMaster, uppers }) => hasMaster && uppers.some((upper) => devices.has(upper)))
      .map(({ name }) => name),
  );
  const independent = known.filter(
    ({ name, lowers }) => !fastPaths.has(name) && lowers.every((lower) => fastPaths.has(lower)),
  );
  const cards = independent.filter(({ hasDevice }) => hasDevice);
  return (cards.length > 0 ? cards : independent).map(({ name }) => name);
}

/** Adds up the traffic of the given interfaces. Returns null if there are none or the sum is not a safe integer. */
export function sumTraffic(traffic: ReadonlyMap<string, Traffic>, counted: readonly string[]): Traffic | null {
  const sum: Traffic = { received: 0, sent: 0 };
  let interfaces = 0;
  for (const name of counted) {
    const of = traffic.get(name);
    if (of === undefined) continue;
    interfaces++;
    sum.received += of.received;
    sum.sent += of.sent;
  }
  return interfaces > 0 && Number.isSafeInteger(sum.received) && Number.isSafeInteger(sum.sent) ? sum : null;
}
