import fc from 'fast-check';
import { expect, test } from 'vitest';
import { normalizedValue, parameterName, parameterPath } from './kernel-parameter.ts';

test('uses the first "." or "/" in a key as the separator', () => {
  expect(parameterPath('net.ipv4.ip_forward')).toBe('net/ipv4/ip_forward');
  expect(parameterPath('net/ipv4/ip_forward')).toBe('net/ipv4/ip_forward');
  expect(parameterPath('net.ipv4.conf.eth0/1.mtu')).toBe('net/ipv4/conf/eth0.1/mtu');
  expect(parameterPath('net/ipv4/conf/eth0.1/mtu')).toBe('net/ipv4/conf/eth0.1/mtu');
  expect(parameterName('net/ipv4/conf/eth0.1/mtu')).toBe('net.ipv4.conf.eth0/1.mtu');
});

test('refuses keys that lead out of /proc/sys', () => {
  for (const key of ['../../etc/passwd', 'net.//.x', 'net/../x', '.net', 'net.', '/net', '', 'a..b', 'a/./b'])
    expect(() => parameterPath(key), key).toThrow(/not the name/);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('.', '/', 'a', 'b') }), (key) => {
      let path: string;
      try {
        path = parameterPath(key);
      } catch {
        return;
      }
      expect(path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')).toBe(true);
      // The dotted name of a path maps back to the same path.
      expect(parameterPath(parameterName(path))).toBe(path);
    }),
  );
});

test('normalizes white space between numbers', () => {
  expect(normalizedValue(' 4096\t131072   6291456\n')).toBe('4096 131072 6291456');
});
