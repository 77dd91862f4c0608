import type { NetworkInterfaceInfo } from 'node:os';
import { readStart, readText } from '../host/read-system.ts';

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

export interface DefaultRoute {
  interface: string;
  /** The interface's first address that other machines might be able to reach. */
  address: string;
}

/**
 * Maximum number of bytes to read of a routing table, about 30,000 routes. The kernel lists the IPv4 default route first,
 * but the IPv6 one last, so that a router with more routes reports none for IPv6.
 */
const maxTableBytes = 4 * 1024 * 1024;

const routesOf = (path: string): string[] => (readStart(path, maxTableBytes) ?? '').split('\n');

/**
 * Returns the name of the route's interface; null if it contains characters that are unusual in names. The kernel also
 * allows quotes and control characters, which could change the meaning of a file into which a module writes the name.
 */
export const nameOfInterface = (route: DefaultRoute | null): string | null =>
  route !== null && /^[A-Za-z0-9_.@=+-]{1,15}$/.test(route.interface) ? route.interface : null;

/**
 * Returns the default route with the smallest metric whose interface has an address, or null if there is none. The
 * format of the routing table is that of Linux's /proc/net/route.
 */
export function defaultRoute4(root: string, interfaces: Interfaces): DefaultRoute | null {
  const names = routesOf(`${root}/proc/net/route`)
    .map((line) => line.split('\t'))
    .filter(([, destination, , , , , , mask]) => destination === '00000000' && mask === '00000000')
    .sort((a, b) => Number(a[6]) - Number(b[6]))
    .map(([name = '']) => name);
  return firstReachable(names, 'IPv4', interfaces);
}

/**
 * Returns the IPv6 default route by the same rules. The format of the routing table is that of Linux's
 * /proc/net/ipv6_route.
 */
export function defaultRoute6(root: string, interfaces: Interfaces): DefaultRoute | null {
  const names = routesOf(`${root}/proc/net/ipv6_route`)
    .map((line) => line.trim().split(/\s+/))
    // On machines without IPv6, the kernel lists a rejecting default route for the interface lo.
    .filter((fields) => /^0{32}$/.test(fields[0] ?? '') && fields[1] === '00' && fields.at(-1) !== 'lo')
    .sort((a, b) => Number.parseInt(a[5] ?? '', 16) - Number.parseInt(b[5] ?? '', 16))
    .map((fields) => fields.at(-1) ?? '');
  return firstReachable(names, 'IPv6', interfaces);
}

function firstReachable(names: readonly string[], family: string, interfaces: Interfaces): DefaultRoute | null {
  for (const name of names) {
    const infos = Object.hasOwn(interfaces, name) ? (interfaces[name] ?? []) : [];
    const found = infos.find((info) => info.family === family && isReachable(info));
    if (found !== undefined) return { interface: name, address: found.address };
  }
  return null;
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
