import { isIPv4, isIPv6, type Socket } from 'node:net';

/**
 * Returns the peer's address, without the prefix of IPv4-mapped addresses. Returns an empty string after a disconnect.
 */
export const remoteIp = (socket: Pick<Socket, 'remoteAddress'>): string =>
  (socket.remoteAddress ?? '').replace(/^::ffff:/, '');

/**
 * Returns the network whose clients share limits: the address itself for IPv4, and the /64 for IPv6, because one client
 * may use all its addresses.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1]!;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const before = head === '' ? [] : head.split(':');
  const behind = tail === undefined || tail === '' ? [] : tail.split(':');
  // An embedded IPv4 address occupies the last two groups, which are not part of the /64.
  const written = before.length + behind.length + (address.includes('.') ? 1 : 0);
  const groups = [...before, ...Array<string>(Math.max(0, 8 - written)).fill('0'), ...behind];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** Returns the site of an unknown machine: its IPv4 /24 or IPv6 /64. */
export function siteOf(address: string): string {
  const network = networkOf(address);
  return isIPv4(network) ? network.slice(0, network.lastIndexOf('.')) : network;
}

/**
 * Returns the /48 that contains an IPv6 network. A provider may assign a /48, with 65,536 networks, to one customer.
 * @param network result of `networkOf` or `siteOf`; an IPv4 network is returned unchanged
 */
export const siteNetworkOf = (network: string): string =>
  network.includes(':') ? `${network.split(':').slice(0, 3).join(':')}/48` : network;
