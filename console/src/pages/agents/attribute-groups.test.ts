import { expect, test } from 'vitest';
import { attributeGroups } from './attribute-groups.ts';

const attributes = {
  distro: 'debian',
  'net.eth0.ip': '10.0.0.1',
  arch: 'x86_64',
  'net.eth0.mac': '00:11',
  'disk.sda': 'SSD',
  '.odd': '1',
};
const names = (search: string) =>
  attributeGroups(attributes, search).map(({ name, entries }) => `${name}: ${entries.map(([key]) => key).join(' ')}`);

test('groups attributes by the text before their first dot, ungrouped ones first', () => {
  expect(names('')).toEqual(['machine: .odd arch distro', 'disk: disk.sda', 'net: net.eth0.ip net.eth0.mac']);
});

test('finds attributes by name and value', () => {
  expect(names('ETH0 10.')).toEqual(['net: net.eth0.ip']);
  expect(names('ssd')).toEqual(['disk: disk.sda']);
  expect(names('nothing')).toEqual([]);
});
