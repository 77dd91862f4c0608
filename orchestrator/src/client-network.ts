import { isIPv4, isIPv6, type Socket } from 'node:net';

/** The address of the other end, IPv4 without its IPv6 dress; empty once the socket is gone. */
export const remoteIp = (socket: Pick<Socket, 'remoteAddress'>): string =>
  (socket.remoteAddress ?? '').replace(/^::ffff:/, '');

/** The network whose clients share one allowance: an IPv4 address, or the /64 of an IPv6 address, as its holder has all of it. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const before = head === '' ? [] : head.split(':');
  const behind = tail === undefined || tail === '' ? [] : tail.split(':');
  // An IPv4 tail stands for two groups, and never for one of the first four.
  const written = before.length + behind.length + (address.includes('.') ? 1 : 0);
  const groups = [...before, ...Array<string>(Math.max(0, 8 - written)).fill('0'), ...behind];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** The site that an unknown machine is counted with: the /24 of an IPv4 address, the /64 of an IPv6 address. */
export function siteOf(address: string): string {
  const network = networkOf(address);
  return isIPv4(network) ? network.slice(0, network.lastIndexOf('.')) : network;
}

/**
 * The /48 around a network or site: what one customer of a provider may have, which is 65,536 of the networks.
 * @param network as `networkOf` or `siteOf` gives it; one of IPv4 has no wider one, and is given back
 */
export const widerOf = (network: string): string =>
  network.includes(':') ? `${network.split(':').slice(0, 3).join(':')}/48` : network;
