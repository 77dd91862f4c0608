import { expect, test } from 'vitest';
import { addressText, parseAgentAddress } from './agent-address.ts';

test('parses a host name, an IPv4 address, and an IPv6 address in brackets', () => {
  expect(parseAgentAddress('muster.example:4747')).toEqual({ host: 'muster.example', port: 4747 });
  expect(parseAgentAddress('192.0.2.1:1')).toEqual({ host: '192.0.2.1', port: 1 });
  expect(parseAgentAddress('[2001:db8::1%eth0]:65535')).toEqual({ host: '2001:db8::1%eth0', port: 65_535 });
});

test.each(['muster.example:4747', '[2001:db8::1]:4747'])('prints %s as it was written', (text) => {
  expect(addressText(parseAgentAddress(text)!)).toBe(text);
});

test.each([
  '',
  'muster.example',
  ':4747',
  'muster.example:',
  'muster.example:0',
  'muster.example:65536',
  'muster.example:4747/',
  'a b:4747',
  '2001:db8::1:4747',
  '[]:4747',
  `${'a'.repeat(254)}:4747`,
])('refuses %j', (text) => {
  expect(parseAgentAddress(text)).toBe(null);
});
