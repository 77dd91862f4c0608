import { isIPv4 } from 'node:net';

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/**
 * Returns a PROXY protocol header of version 2 for a client of a TCP balancer.
 * @param extensions bytes after the addresses
 */
export function headerOf(client: string, port: number, extensions: Buffer = Buffer.alloc(0)): Buffer {
  const address = isIPv4(client) ? Buffer.from(client.split('.').map(Number)) : ipv6Bytes(client);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(port, 0);
  ports.writeUInt16BE(4748, 2);
  const rest = Buffer.concat([address, Buffer.alloc(address.length, 9), ports, extensions]);
  const fixed = Buffer.from([0x21, address.length === 4 ? 0x11 : 0x21, 0, 0]);
  fixed.writeUInt16BE(rest.length, 2);
  return Buffer.concat([signature, fixed, rest]);
}

/** Returns the header of a health check. */
export const localHeader = (): Buffer => Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])]);

function ipv6Bytes(address: string): Buffer {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const hex = ([a, b]: [string, string]) => (Number(a) * 256 + Number(b)).toString(16);
  const text =
    dotted === null ? address : `${dotted[1]}${hex([dotted[2]!, dotted[3]!])}:${hex([dotted[4]!, dotted[5]!])}`;
  const [head = '', tail = ''] = text.split('::');
  const [before, behind] = [head, tail].map((part) => (part === '' ? [] : part.split(':'))) as [string[], string[]];
  const middle = Array<string>(8 - before.length - behind.length).fill('0');
  return Buffer.from([...before, ...middle, ...behind].map((group) => group.padStart(4, '0')).join(''), 'hex');
}
