/** What went over the network: which interfaces count, and what /proc/net/dev says of them. */

export interface Traffic {
  received: number;
  sent: number;
}

const loopback = 'lo';

/** @param text of /proc/net/dev. Bytes by interface, without loopback; a line that is malformed is not there. */
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

/** What stands behind an interface, as /sys/class/net shows it. */
export interface Backing {
  /** A network card, a virtual machine's included. */
  hasDevice: boolean;
  /** Those that carry what it carries: it is a bridge, bond or VLAN. */
  lowers: readonly string[];
  /** Those that stand on it. */
  uppers: readonly string[];
  /** One of these has it for its own alone. */
  hasMaster: boolean;
}

/** @param entries names in the interface's directory of /sys/class/net */
export function backingOf(hasDevice: boolean, entries: readonly string[]): Backing {
  const after = (prefix: string) =>
    entries.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return { hasDevice, lowers: after('lower_'), uppers: after('upper_'), hasMaster: entries.includes('master') };
}

/**
 * Which interfaces make up the machine's traffic, each byte once: the network cards. What goes over a bridge, a bond, a
 * VLAN or a tunnel goes over them too, and what containers of this machine say to each other never leaves it. Where there
 * is no card, as in a container, they are all that stand on no other. A card may be the faster half of another one, which
 * counts for both and stays when the half is taken away: so it is on Hyper-V and Azure, and with virtio's failover.
 */
export function countedInterfaces(names: Iterable<string>, backing: (name: string) => Backing): string[] {
  const known = [...names].map((name) => ({ name, ...backing(name) }));
  const devices = new Set(known.filter(({ hasDevice }) => hasDevice).map(({ name }) => name));
  const halves = new Set(
    known
      .filter(({ hasMaster, uppers }) => hasMaster && uppers.some((upper) => devices.has(upper)))
      .map(({ name }) => name),
  );
  const alone = known.filter(({ name, lowers }) => !halves.has(name) && lowers.every((lower) => halves.has(lower)));
  const cards = alone.filter(({ hasDevice }) => hasDevice);
  return (cards.length > 0 ? cards : alone).map(({ name }) => name);
}

/** Null when nothing is counted, or there is more than a number holds. */
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
