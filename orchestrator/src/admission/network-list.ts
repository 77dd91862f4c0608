import { BlockList, isIPv6 } from 'node:net';

/**
 * Returns a function that reports whether an address belongs to one of the networks.
 * @param networks IP addresses and networks, such as `10.0.0.0/8`
 */
export function networkMatcher(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
