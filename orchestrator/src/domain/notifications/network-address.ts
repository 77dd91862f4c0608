import ipaddr from 'ipaddr.js';

/**
 * Where messages may be sent to, decided on the bytes of an address, so that no spelling makes a difference.
 *
 * `public`: anywhere on the internet. `private`: this machine, networks at home, whatever is not routed publicly.
 * `refused`: never a place for messages: link-local, what clouds answer their machines' secrets on, multicast,
 * broadcast, unspecified and reserved addresses.
 */
export type AddressClass = 'public' | 'private' | 'refused';

type Range = [ipaddr.IPv4, number] | [ipaddr.IPv6, number];
const ranges = (...texts: string[]): Range[] => texts.map((text) => ipaddr.parseCIDR(text) as Range);

const refused4 = ranges(
  '0.0.0.0/8', // "this network"; 0.0.0.0 reaches this machine on Linux
  '100.100.100.200/32', // metadata of Alibaba
  '168.63.129.16/32', // the same of Azure
  '169.254.0.0/16', // link-local, and the metadata of most clouds
  '192.0.0.0/24', // protocol assignments, and the metadata of Oracle
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
);
const refused6 = ranges(
  '::/128',
  '64:ff9b:1::/48', // translation within one network: where the IPv4 address stands in it is that network's affair
  '100::/64', // discard
  '2001::/32', // Teredo tunnels end anywhere
  'fd00:42::42/128', // metadata of Scaleway
  'fd00:c1::a9fe:a9fe/128', // of Oracle
  'fd00:ec2::/32', // of Amazon
  'fd20:ce::254/128', // of Google
  'fe80::/10', // link-local
  'fec0::/10', // site-local, withdrawn
  'ff00::/8', // multicast
);

/** All that is given out for the internet so far. */
const globalUnicast = ranges('2000::/3');

const within = (address: ipaddr.IPv4 | ipaddr.IPv6, list: readonly Range[]): boolean =>
  list.some(([range, bits]) => address.kind() === range.kind() && address.match(range as never, bits));

/** Where an IPv4 address stands in an IPv6 one that leads to it: its prefix, and the first byte. */
const carriers: readonly [prefix: Range, at: number][] = [
  ['::/96', 12], // IPv4-compatible, withdrawn
  ['::ffff:0:0/96', 12], // IPv4-mapped
  ['::ffff:0:0:0/96', 12], // IPv4-translated
  ['64:ff9b::/96', 12], // NAT64
  ['2002::/16', 2], // 6to4
].map(([prefix, at]) => [ranges(prefix as string)[0] as Range, at as number]);

/** ISATAP: the last half is 0000:5efe or 0200:5efe and an IPv4 address, whatever the first half is. */
const isIsatap = (bytes: readonly number[]): boolean =>
  (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;

function carried(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  const bytes = address.toByteArray();
  const place = carriers.find(([prefix]) => within(address, [prefix]))?.[1] ?? (isIsatap(bytes) ? 12 : null);
  return place === null ? null : new ipaddr.IPv4(bytes.slice(place, place + 4));
}

function classOf(address: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  if (within(address, address.kind() === 'ipv4' ? refused4 : refused6)) return 'refused';
  if (address.kind() === 'ipv6') {
    const v6 = address as ipaddr.IPv6;
    // Loopback would pass for the IPv4-compatible 0.0.0.1.
    if (v6.range() === 'loopback') return 'private';
    const v4 = carried(v6);
    if (v4 !== null) return classOf(v4);
    if (!within(v6, globalUnicast)) return 'private';
  }
  return address.range() === 'unicast' ? 'public' : 'private';
}

/**
 * @param text an address as a resolver or the parser of URLs gives it, without brackets; a zone does not count
 * @returns `refused` also for what is no address
 */
export function classOfAddress(text: string): AddressClass {
  const bare = text.replace(/%.*$/s, '');
  // The library reads 0x7f.1 and 010.0.0.1 too; whoever gives us those has not parsed them, so the far end may differ.
  if (!ipaddr.IPv6.isValid(bare) && !ipaddr.IPv4.isValidFourPartDecimal(bare)) return 'refused';
  return classOf(ipaddr.parse(bare));
}

/** Whether messages may be sent to this address. */
export function mayReach(address: string, rule: { denyPrivate: boolean }): boolean {
  const kind = classOfAddress(address);
  return kind === 'public' || (kind === 'private' && !rule.denyPrivate);
}
