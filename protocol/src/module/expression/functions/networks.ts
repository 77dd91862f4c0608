import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import ipaddr from 'ipaddr.js';
import { ExpressionError } from '../values.ts';
import type { ExpressionFunction } from './function.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** @throws ExpressionError for anything other than the usual forms, because the library would also accept `0x7f.1` */
function addressOf(text: string): Address {
  if (ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && ipaddr.IPv6.isValid(text)))
    return ipaddr.parse(text);
  throw new ExpressionError(`${JSON.stringify(text.slice(0, 64))} is not an IP address`);
}

function networkOf(text: string): [Address, number] {
  const [address = '', prefix = '', more] = text.split('/');
  const found = addressOf(address);
  const bits = found.kind() === 'ipv4' ? 32 : 128;
  const length = /^[0-9]{1,3}$/.test(prefix) && more === undefined ? Number(prefix) : bits + 1;
  if (length > bits)
    throw new ExpressionError(`${JSON.stringify(text.slice(0, 64))} is not a network such as 192.0.2.0/24`);
  return [found, length];
}

/** Returns the address at an index in a network. */
function host(text: string, index: bigint): string {
  const [address, length] = networkOf(text);
  const bytes = address.toByteArray();
  const bits = BigInt(bytes.length * 8);
  const size = 1n << (bits - BigInt(length));
  const position = index < 0n ? size + index : index;
  if (position < 0n || position >= size) throw new ExpressionError(`${text} has no address ${index}`);
  const number = BigInt(`0x${bytesToHex(Uint8Array.from(bytes))}`);
  const found = (number / size) * size + position;
  return ipaddr.fromByteArray([...hexToBytes(found.toString(16).padStart(bytes.length * 2, '0'))]).toString();
}

export const networkFunctions: readonly ExpressionFunction[] = [
  {
    name: 'cidrContains',
    form: 'cidrContains(network, address)',
    signatures: ['cidrContains(string, string): bool'],
    about: 'Whether a network contains an IPv4 or IPv6 address.',
    examples: [['cidrContains("10.0.0.0/8", "10.1.2.3")', 'true']],
    call: (_, network: string, address: string) => {
      const [base, length] = networkOf(network);
      const found = addressOf(address);
      return base.kind() === found.kind() && found.match(base as never, length);
    },
  },
  {
    name: 'cidrHost',
    form: 'cidrHost(network, index)',
    signatures: ['cidrHost(string, int): string'],
    about: 'The address at an index in a network; a negative index counts from its end.',
    examples: [
      ['cidrHost("192.0.2.0/24", 1)', '"192.0.2.1"'],
      ['cidrHost("192.0.2.0/24", -2)', '"192.0.2.254"'],
    ],
    call: (meter, network: string, index: bigint) => {
      meter.spend(15);
      return host(network, index);
    },
  },
  {
    name: 'cidrNetmask',
    form: 'cidrNetmask(network)',
    signatures: ['cidrNetmask(string): string'],
    about: 'The netmask of an IPv4 network.',
    examples: [['cidrNetmask("192.0.2.0/24")', '"255.255.255.0"']],
    call: (_, network: string) => {
      const [address, length] = networkOf(network);
      if (address.kind() !== 'ipv4') throw new ExpressionError('cidrNetmask takes an IPv4 network');
      return ipaddr.IPv4.subnetMaskFromPrefixLength(length).toString();
    },
  },
  {
    name: 'cidrPrefix',
    form: 'cidrPrefix(network)',
    signatures: ['cidrPrefix(string): int'],
    about: 'The prefix length of a network.',
    examples: [['cidrPrefix("192.0.2.0/24")', '24']],
    call: (_, network: string) => BigInt(networkOf(network)[1]),
  },
];
