import ipaddr from 'ipaddr.js';

/**
 * Returns the canonical form of an IP address or network: with all host bits cleared, and without a prefix length for a
 * single address.
 * @returns null for anything else, for a network with the prefix length 0, and for IPv4 addresses in IPv6 notation
 */
export function ipNetwork(text: string): { family: 4 | 6; text: string; length: number } | null {
  const [address = '', prefix, more] = text.split('/');
  const isFour = ipaddr.IPv4.isValidFourPartDecimal(address);
  if (!isFour && !(address.includes(':') && !address.includes('%') && ipaddr.IPv6.isValid(address))) return null;
  const found = isFour ? ipaddr.IPv4.parse(address) : ipaddr.IPv6.parse(address);
  if (found instanceof ipaddr.IPv6 && found.isIPv4MappedAddress()) return null;
  const bits = isFour ? 32 : 128;
  const length = prefix === undefined ? bits : /^[1-9]\d{0,2}$/.test(prefix) ? Number(prefix) : 0;
  if (more !== undefined || length < 1 || length > bits) return null;
  const bytes = found
    .toByteArray()
    .map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, length - 8 * i))) & 0xff);
  const base = ipaddr.fromByteArray(bytes).toString();
  return { family: isFour ? 4 : 6, text: length === bits ? base : `${base}/${length}`, length };
}
