import { createSocket } from 'node:dgram';
import type { NetworkInterfaceInfo } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { UnknownHostError } from '../domain/agents/discovery.ts';
import { createAnnouncer } from './announcer.ts';
import { broadcastAddress, broadcastRoutes, isMulticastOrUnspecified } from './broadcast-routes.ts';

const ipv4 = (address: string, netmask: string, internal = false): NetworkInterfaceInfo => ({
  family: 'IPv4',
  address,
  netmask,
  internal,
  mac: '00:00:00:00:00:00',
  cidr: null,
});
const ipv6 = (address: string, internal = false): NetworkInterfaceInfo => ({
  family: 'IPv6',
  address,
  netmask: 'ffff:ffff:ffff:ffff::',
  internal,
  mac: '00:00:00:00:00:00',
  cidr: null,
  scopeid: 0,
});

describe('broadcast networks', () => {
  test.each([
    ['192.0.2.17', '255.255.255.0', '192.0.2.255'],
    ['10.77.3.9', '255.255.0.0', '10.77.255.255'],
    ['172.16.5.1', '255.240.0.0', '172.31.255.255'],
    ['192.0.2.129', '255.255.255.252', '192.0.2.131'],
    ['192.0.2.1', '255.255.255.254', null],
    ['192.0.2.1', '255.255.255.255', null],
    ['1.2.3.4', '0.0.0.0', '255.255.255.255'],
  ])('computes the broadcast address of %s with netmask %s as %s', (address, netmask, expected) => {
    expect(broadcastAddress(address, netmask)).toBe(expected);
  });

  test('broadcasts on each interface except the loopback, and uses the all-nodes address for IPv6', () => {
    expect(
      broadcastRoutes({
        lo: [ipv4('127.0.0.1', '255.0.0.0', true), ipv6('::1', true)],
        eth0: [ipv4('192.0.2.17', '255.255.255.0'), ipv6('fe80::1'), ipv6('2001:db8::17')],
        eth1: [ipv4('198.51.100.1', '255.255.255.0'), ipv4('198.51.100.2', '255.255.255.0')],
        wg0: [ipv4('10.0.0.2', '255.255.255.255')],
        eth2: [ipv6('fe80::2')],
        down: undefined,
      }),
    ).toEqual([
      { family: 'udp4', from: '192.0.2.17', to: '192.0.2.255', interface: 'eth0' },
      { family: 'udp6', from: '2001:db8::17', to: 'ff02::1%eth0', interface: 'eth0' },
      { family: 'udp4', from: '198.51.100.1', to: '198.51.100.255', interface: 'eth1' },
      { family: 'udp6', from: null, to: 'ff02::1%eth2', interface: 'eth2' },
    ]);
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`br${n}`, [ipv4(`10.1.${n % 256}.1`, '255.255.255.0')]]),
    );
    expect(broadcastRoutes(many)).toHaveLength(64);
  });

  test('refuses multicast and unspecified addresses as hosts', () => {
    for (const address of [
      '0.0.0.0',
      '224.0.0.1',
      '239.255.255.255',
      '::',
      'ff02::1',
      'ff02::1%eth0',
      '::ffff:224.0.0.1',
    ])
      expect(isMulticastOrUnspecified(address), address).toBe(true);
    for (const address of ['127.0.0.1', '192.0.2.255', '255.255.255.255', '::1', 'fe80::1%eth0', '::ffff:192.0.2.1'])
      expect(isMulticastOrUnspecified(address), address).toBe(false);
  });
});

describe('datagrams', () => {
  const sockets: ReturnType<typeof createSocket>[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.close();
  });

  async function listen(): Promise<{ port: number; next: Promise<string> }> {
    const socket = createSocket('udp4');
    sockets.push(socket);
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    const next = new Promise<string>((resolve) => socket.once('message', (data) => resolve(data.toString())));
    return { port: socket.address().port, next };
  }

  test('builds each datagram for the local address from which it is sent', async () => {
    const { port, next } = await listen();
    const deliveries = await createAnnouncer().send('127.0.0.1', port, (local) => Buffer.from(`from ${local}`));
    expect(deliveries).toEqual([{ to: `127.0.0.1:${port}`, error: null }]);
    expect(await next).toBe('from 127.0.0.1');
  });

  test('omits datagrams that cannot be built, reports send failures, and refuses unknown hosts', async () => {
    const announcer = createAnnouncer();
    const failed = await announcer.send('127.0.0.1', 4747, () => {
      throw new Error('no address to tell');
    });
    expect(failed).toEqual([{ to: '127.0.0.1:4747', error: 'no address to tell' }]);
    await expect(announcer.send('224.0.0.1', 4747, () => Buffer.alloc(1))).rejects.toThrow(UnknownHostError);
    await expect(announcer.send('0.0.0.0', 4747, () => Buffer.alloc(1))).rejects.toThrow(UnknownHostError);
  });
});
