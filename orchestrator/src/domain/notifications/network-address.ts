import ipaddr from 'ipaddr.js';

/**
 * Classes of message destinations. `public`: routed on the internet. `private`: this machine, local networks, and all
 * other addresses that are not publicly routed. `refused`: never a destination, namely link-local, cloud metadata
 * services, multicast, broadcast, unspecified, and reserved addresses.
 */
export type AddressClass = 'public' | 'private' | 'refused';

type Range = [ipaddr.IPv4, number] | [ipaddr.IPv6, number];
const ranges = (...texts: string[]): Range[] => texts.map((text) => ipaddr.parseCIDR(text) as Range);

const refused4 = ranges(
  '0.0.0.0/8', // "this network"; 0.0.0.0 reaches this machine on Linux
  '100.100.100.200/32', // Alibaba metadata
  '168.63.129.16/32', // Azure metadata
  '169.254.0.0/16', // link-local, and the metadata service of most clouds
  '192.0.0.0/24', // protocol assignments, and Oracle metadata
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
);
const refused6 = ranges(
  '::/128',
  '64:ff9b:1::/48', // local-use NAT64; the position of the IPv4 address depends on the network
  '100::/64', // discard
  '2001::/32', // Teredo; its tunnels may end anywhere
  'fd00:42::42/128', // Scaleway metadata
  'fd00:c1::a9fe:a9fe/128', // Oracle metadata
  'fd00:ec2::/32', // Amazon metadata
  'fd20:ce::254/128', // Google metadata
  'fe80::/10', // link-local
  'fec0::/10', // site-local, withdrawn
  'ff00::/8', // multicast
);

/** The only IPv6 range allocated for the internet. */
const globalUnicast = ranges('2000::/3');

const within = (address: ipaddr.IPv4 | ipaddr.IPv6, list: readonly Range[]): boolean =>
  list.some(([range, bits]) => address.kind() === range.kind() && address.match(range as never, bits));

/** IPv6 prefixes that embed an IPv4 address, with the offset of the address's first byte. */
const embeddingPrefixes: readonly [prefix: Range, at: number][] = [
  ['::/96', 12], // IPv4-compatible, withdrawn
  ['::ffff:0:0/96', 12], // IPv4-mapped
  ['::ffff:0:0:0/96', 12], // IPv4-translated
  ['64:ff9b::/96', 12], // NAT64
  ['2002::/16', 2], // 6to4
].map(([prefix, at]) => [ranges(prefix as string)[0] as Range, at as number]);

/**
 * Reports whether an address is ISATAP: any prefix, then the interface identifier 0000:5efe or 0200:5efe, then an IPv4
 * address.
 */
const isIsatap = (bytes: readonly number[]): boolean =>
  (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;

function embeddedIpv4(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  const bytes = address.toByteArray();
  const offset = embeddingPrefixes.find(([prefix]) => within(address, [prefix]))?.[1] ?? (isIsatap(bytes) ? 12 : null);
  return offset === null ? null : new ipaddr.IPv4(bytes.slice(offset, offset + 4));
}

function classOf(address: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  if (within(address, address.kind() === 'ipv4' ? refused4 : refused6)) return 'refused';
  if (address.kind() === 'ipv6') {
    const v6 = address as ipaddr.IPv6;
    // Loopback would otherwise match as the IPv4-compatible address 0.0.0.1.
    if (v6.range() === 'loopback') return 'private';
    const v4 = embeddedIpv4(v6);
    if (v4 !== null) return classOf(v4);
    if (!within(v6, globalUnicast)) return 'private';
  }
  return address.range() === 'unicast' ? 'public' : 'private';
}

/**
 * Classifies an address by its bytes, so that its notation makes no difference.
 * @param text an address as returned by a resolver or the URL parser, without brackets; a zone is ignored
 * @returns the class; also `refused` if the text is not an address
 */
export function classOfAddress(text: string): AddressClass {
  const unscoped = text.replace(/%.*$/s, '');
  // The library also accepts 0x7f.1 and 010.0.0.1. Parsers differ in how they read these notations, so the receiver may
  // connect to another address.
  if (!ipaddr.IPv6.isValid(unscoped) && !ipaddr.IPv4.isValidFourPartDecimal(unscoped)) return 'refused';
  return classOf(ipaddr.parse(unscoped));
}

/** Reports whether messages may be sent to this address. */
export function mayReach(address: string, rule: { denyPrivate: boolean }): boolean {
  const kind = classOfAddress(address);
  return kind === 'public' || (kind === 'private' && !rule.denyPrivate);
}
