import type { NetworkInterfaceInfo } from 'node:os';

/** A network to broadcast on. */
export interface BroadcastRoute {
  family: 'udp4' | 'udp6';
  /** Local address that agents on the network can reach; null for an IPv6 network with only link-local addresses. */
  from: string | null;
  /** The broadcast address; for IPv6, the all-nodes address of the link, with the interface. */
  to: string;
  interface: string;
}

/** Maximum number of networks. A container host may have many bridges. */
const maxRoutes = 64;

/**
 * Returns the broadcast destinations: the broadcast address of each IPv4 network, and the all-nodes address of each
 * IPv6 link.
 * @param interfaces in the format of `os.networkInterfaces()`
 */
export function broadcastRoutes(
  interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>,
): BroadcastRoute[] {
  const routes: BroadcastRoute[] = [];
  for (const [name, addresses = []] of Object.entries(interfaces)) {
    const outside = addresses.filter(({ internal }) => !internal);
    for (const { family, address, netmask } of outside) {
      const to = family === 'IPv4' ? broadcastAddress(address, netmask) : null;
      if (to !== null && !routes.some((route) => route.to === to && route.interface === name))
        routes.push({ family: 'udp4', from: address, to, interface: name });
    }
    const ipv6 = outside.filter(({ family }) => family === 'IPv6').map(({ address }) => address);
    if (ipv6.length === 0) continue;
    const from = ipv6.find((address) => !isLinkLocal(address)) ?? null;
    routes.push({ family: 'udp6', from, to: `ff02::1%${name}`, interface: name });
  }
  return routes.slice(0, maxRoutes);
}

const isLinkLocal = (address: string): boolean => /^fe[89ab]/i.test(address);

/** @returns null for a network without a broadcast address: a point-to-point link or a single address */
export function broadcastAddress(address: string, netmask: string): string | null {
  const mask = toNumber(netmask);
  const hosts = ~mask >>> 0;
  if (hosts < 3) return null;
  const broadcast = ((toNumber(address) & mask) | hosts) >>> 0;
  return [24, 16, 8, 0].map((shift) => (broadcast >>> shift) & 0xff).join('.');
}

const toNumber = (address: string): number =>
  address.split('.').reduce((sum, part) => ((sum << 8) | Number(part)) >>> 0, 0);

/** Reports whether an address is multicast or unspecified. Accepts every notation that a resolver returns. */
export function isMulticastOrUnspecified(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  if (plain.includes(':')) return /^ff/i.test(plain) || /^[0:]+$/.test(plain.replace(/%.*$/, ''));
  const first = Number(plain.split('.')[0]);
  return first === 0 || (first >= 224 && first < 240);
}
