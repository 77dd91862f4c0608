import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addressesOf, defaultRoute4, defaultRoute6, fullyQualifiedName, nameOfInterface } from './network-facts.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(`${tmpdir()}/muster-facts-`);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string) => {
  mkdirSync(dirname(root + path), { recursive: true });
  writeFileSync(root + path, text);
};

const info = (address: string, internal = false) =>
  ({ address, internal, family: address.includes(':') ? 'IPv6' : 'IPv4' }) as NetworkInterfaceInfo;
const interfaces = {
  lo: [info('127.0.0.1', true), info('::1', true)],
  docker0: [info('172.17.0.1')],
  eth0: [info('fe80::1'), info('192.0.2.7'), info('2001:db8::7')],
  eth1: [info('169.254.3.4'), info('198.51.100.7')],
};

test('lists the addresses that other machines may reach, IPv4 first', () => {
  expect(addressesOf(interfaces)).toBe('172.17.0.1,192.0.2.7,198.51.100.7,2001:db8::7');
  const many = { eth0: Array.from({ length: 300 }, (_, at) => info(`10.0.1.${at}`)) };
  expect(addressesOf(many).split(',')).toHaveLength(20);
});

const header = 'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n';
const route = (name: string, destination: string, metric: number) =>
  `${name}\t${destination}\t010200C0\t0003\t0\t0\t${metric}\t${destination === '00000000' ? '00000000' : '00FFFFFF'}\t0\t0\t0\n`;

test('finds the interface with the preferred IPv4 default route, and its address', () => {
  expect(defaultRoute4(root, interfaces)).toBeNull();
  write('/proc/net/route', `${header}${route('docker0', '000011AC', 0)}`);
  expect(defaultRoute4(root, interfaces)).toBeNull();
  write('/proc/net/route', `${header}${route('eth1', '00000000', 200)}${route('eth0', '00000000', 100)}`);
  expect(defaultRoute4(root, interfaces)).toEqual({ interface: 'eth0', address: '192.0.2.7' });
  write('/proc/net/route', `${header}${route('gone0', '00000000', 0)}${route('eth1', '00000000', 200)}`);
  expect(defaultRoute4(root, interfaces)).toEqual({ interface: 'eth1', address: '198.51.100.7' });
});

test('finds the interface with the IPv6 default route, and its address', () => {
  const zero = '0'.repeat(32);
  const line = (name: string, metric = '00000400') =>
    `${zero} 00 ${zero} 00 fe80${'0'.repeat(28)} ${metric} 00000001 00000000 00000003 ${name}\n`;
  write('/proc/net/ipv6_route', line('      lo'));
  expect(defaultRoute6(root, interfaces)).toBeNull();
  write('/proc/net/ipv6_route', `${line('    eth0')}${line('      lo')}`);
  expect(defaultRoute6(root, interfaces)).toEqual({ interface: 'eth0', address: '2001:db8::7' });
  const two = { ...interfaces, eth2: [info('2001:db8::9')] };
  write('/proc/net/ipv6_route', `${line('    eth0')}${line('    eth2', '00000100')}`);
  expect(defaultRoute6(root, two)).toEqual({ interface: 'eth2', address: '2001:db8::9' });
});

test('reads only the start of a routing table, and ignores lines that are not routes', () => {
  const others = route('eth1', '000011AC', 0).repeat(100_000);
  write('/proc/net/route', `${header}${route('eth0', '00000000', 100)}\0\n\t\t\n${others}`);
  expect(defaultRoute4(root, interfaces)).toMatchObject({ interface: 'eth0' });
  write('/proc/net/route', `${header}${others}${route('eth0', '00000000', 100)}`);
  expect(defaultRoute4(root, interfaces)).toBeNull();
  write('/proc/net/route', `${header}${route('constructor', '00000000', 0)}${route('__proto__', '00000000', 0)}`);
  expect(defaultRoute4(root, interfaces)).toBeNull();
});

test('reports the name of an interface only if it is safe in files', () => {
  const named = (name: string) => nameOfInterface({ interface: name, address: '192.0.2.7' });
  for (const name of ['eth0', 'enp0s31f6', 'eth0.100', 'br-0a1b2c3d4e5f', 'wg_0']) expect(named(name)).toBe(name);
  for (const name of ['', 'a;reboot', 'a"b', 'a\u001b[0m', '$(id)', 'é0', 'a23456789012345x', 'a\n'])
    expect(named(name), name).toBeNull();
  expect(nameOfInterface(null)).toBeNull();
});

test('takes the domain from the hostname or from /etc/hosts', () => {
  expect(fullyQualifiedName(root, 'web-1')).toBe('web-1');
  write('/etc/hosts', '127.0.0.1 localhost\n# 192.0.2.1 web-1.commented.example\n192.0.2.7\tweb-1.example.com web-1\n');
  expect(fullyQualifiedName(root, 'web-1')).toBe('web-1.example.com');
  expect(fullyQualifiedName(root, 'web')).toBe('web');
  expect(fullyQualifiedName(root, 'db.example.org')).toBe('db.example.org');
});
