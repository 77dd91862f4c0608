import fc from 'fast-check';
import { expect, test } from 'vitest';
import { headerOf, localHeader } from '../../test/proxy-header.ts';
import { fixedBytes, ProxyHeaderError, readClient, readFixedPart } from './proxy-protocol.ts';

function read(header: Buffer) {
  const fixed = readFixedPart(header.subarray(0, fixedBytes));
  expect(header.length).toBe(fixedBytes + fixed.restBytes);
  return readClient(fixed, header.subarray(fixedBytes));
}

test('reads IPv4 and IPv6 client addresses, and skips extensions', () => {
  expect(read(headerOf('192.0.2.7', 40_000))).toEqual({ address: '192.0.2.7', port: 40_000 });
  expect(read(headerOf('2001:db8::7', 1))).toEqual({ address: '2001:db8::7', port: 1 });
  expect(read(headerOf('192.0.2.7', 40_000, Buffer.alloc(300, 0x20)))?.address).toBe('192.0.2.7');
});

test('reads a mapped IPv4 address as IPv4', () => {
  expect(read(headerOf('::ffff:192.0.2.7', 9))?.address).toBe('192.0.2.7');
});

test('returns null for a health check of the balancer, and for a client without an IP address', () => {
  expect(read(localHeader())).toBeNull();
  const unix = Buffer.concat([headerOf('192.0.2.7', 9).subarray(0, 16), Buffer.alloc(216)]);
  unix[13] = 0x31;
  unix.writeUInt16BE(216, 14);
  expect(read(unix)).toBeNull();
  const udp = headerOf('192.0.2.7', 9);
  udp[13] = 0x12;
  expect(read(udp)).toBeNull();
});

test.each<[string, (header: Buffer) => void, RegExp]>([
  ['TLS', (header) => header.set([0x16, 3, 1, 2]), /does not begin with a header/],
  ['version 1', (header) => header.write('PROXY TCP4 1.2.3'), /has version 1, but version 2 is required/],
  ['version 3', (header) => header.writeUInt8(0x31, 12), /unknown version or command \(0x31\)/],
  ['an unknown command', (header) => header.writeUInt8(0x22, 12), /unknown version or command \(0x22\)/],
  ['missing addresses', (header) => header.writeUInt16BE(11, 14), /too short for the addresses of TCP over IPv4/],
  ['a very long rest', (header) => header.writeUInt16BE(4097, 14), /has more than 4112 bytes/],
])('refuses %s', (_name, change, message) => {
  const header = headerOf('192.0.2.7', 9);
  change(header);
  expect(() => readFixedPart(header.subarray(0, fixedBytes))).toThrow(message);
});

test('reads every address that a header states, and refuses all other bytes with its own error class', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: 0, max: 65_535 }), (address, port) => {
      const header = headerOf(address, port);
      const client = read(header);
      expect(client?.port).toBe(port);
      // A mapped IPv4 address is read as its last 4 bytes.
      const again = headerOf(client?.address as string, port);
      const sizeOf = (of: Buffer) => (of[13] === 0x11 ? 4 : 16);
      const given = header.subarray(fixedBytes, fixedBytes + sizeOf(header));
      expect(again.subarray(fixedBytes, fixedBytes + sizeOf(again))).toEqual(given.subarray(-sizeOf(again)));
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 4 }), (behind) => {
      const bytes = Buffer.concat([headerOf('192.0.2.7', 9).subarray(0, 12), behind]);
      try {
        const fixed = readFixedPart(bytes);
        readClient(fixed, Buffer.alloc(fixed.restBytes));
      } catch (error) {
        expect(error).toBeInstanceOf(ProxyHeaderError);
      }
    }),
  );
});
