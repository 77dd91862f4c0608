import { isIPv4, isIPv6, type Socket } from 'node:net';

/** The peer's address, IPv4 without the IPv6 prefix; empty after a disconnect. */
export const remoteIp = (socket: Pick<Socket, 'remoteAddress'>): string =>
  (socket.remoteAddress ?? '').replace(/^::ffff:/, '');

/**
 * The network whose clients share limits: an IPv4 address, or the /64 of an IPv6 address, since one holder has all of
 * it.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const before = head === '' ? [] : head.split(':');
  const behind = tail === undefined || tail === '' ? [] : tail.split(':');
  // An IPv4 tail replaces two groups, never one of the first four.
  const written = before.length + behind.length + (address.includes('.') ? 1 : 0);
  const groups = [...before, ...Array<string>(Math.max(0, 8 - written)).fill('0'), ...behind];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** The site that an unknown machine counts toward: the /24 of an IPv4 address, the /64 of an IPv6 address. */
export function siteOf(address: string): string {
  const network = networkOf(address);
  return isIPv4(network) ? network.slice(0, network.lastIndexOf('.')) : network;
}

/**
 * The /48 around an IPv6 network or site: the size of one provider customer, 65,536 networks.
 * @param network from `networkOf` or `siteOf`; an IPv4 one is returned unchanged
 */
export const siteNetworkOf = (network: string): string =>
  network.includes(':') ? `${network.split(':').slice(0, 3).join(':')}/48` : network;
