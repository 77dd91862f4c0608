import type { NetworkInterfaceInfo } from 'node:os';
import { readText } from '../host/read-system.ts';

/** Facts about the machine's names and addresses. Performs no lookups over the network. */

type Interfaces = Readonly<Record<string, NetworkInterfaceInfo[] | undefined>>;

/** Maximum number of addresses. A machine with many containers may have hundreds. */
const maxAddresses = 20;

/** Reports whether other machines may reach the address, which excludes loopback and link-local addresses. */
const isReachable = ({ internal, address }: NetworkInterfaceInfo): boolean =>
  !internal && !/^(169\.254\.|fe[89ab][0-9a-f]:)/i.test(address);

/** Returns the machine's addresses, separated by commas: IPv4 before IPv6, in interface order. */
export function addressesOf(interfaces: Interfaces): string {
  const reachable = Object.values(interfaces).flatMap((infos) => (infos ?? []).filter(isReachable));
  const family = (name: string) => reachable.filter((info) => info.family === name).map(({ address }) => address);
  return [...new Set([...family('IPv4'), ...family('IPv6')])].slice(0, maxAddresses).join(',');
}

/**
 * Returns the first address of the interface with the default route, IPv4 preferred; null if there is no default route.
 * The formats of the routing tables are those of Linux's /proc/net/route and /proc/net/ipv6_route.
 */
export function defaultAddress(root: string, interfaces: Interfaces): string | null {
  const [, ...routes] = (readText(`${root}/proc/net/route`) ?? '').split('\n');
  const v4 = routes
    .map((line) => line.split('\t'))
    .filter(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')
    .sort((a, b) => Number(a[6]) - Number(b[6]))
    .map(([name = '']) => name);
  const v6 = (readText(`${root}/proc/net/ipv6_route`) ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    // On machines without IPv6, the kernel lists a rejecting default route for the interface lo.
    .filter((fields) => /^0{32}$/.test(fields[0] ?? '') && fields[1] === '00' && fields.at(-1) !== 'lo')
    .sort((a, b) => Number.parseInt(a[5] ?? '', 16) - Number.parseInt(b[5] ?? '', 16))
    .map((fields) => fields.at(-1) ?? '');
  const first = (names: readonly string[], family: string) =>
    names
      .flatMap((name) => (Object.hasOwn(interfaces, name) ? (interfaces[name] ?? []) : []))
      .find((info) => info.family === family && isReachable(info))?.address;
  return first(v4, 'IPv4') ?? first(v6, 'IPv6') ?? null;
}

/** Returns the name with its domain if the hostname or /etc/hosts contains the domain; otherwise, the hostname. */
export function fullyQualifiedName(root: string, hostname: string): string {
  if (hostname.includes('.')) return hostname;
  for (const line of (readText(`${root}/etc/hosts`) ?? '').split('\n')) {
    const [, ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const full = names.find((name) => name.startsWith(`${hostname}.`));
    if (full !== undefined) return full;
  }
  return hostname;
}
