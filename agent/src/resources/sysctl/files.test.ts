import { expect, test } from 'vitest';
import { laterFile, valueIn } from './files.ts';

const path = 'net/ipv4/conf/eth0/rp_filter';

test('reads the last value that a file sets for a parameter, in any notation of its key', () => {
  expect(valueIn('net.ipv4.conf.eth0.rp_filter = 1\n-net/ipv4/conf/eth0/rp_filter=2\n', path)).toBe('2');
  expect(valueIn('net.ipv4.conf.*.rp_filter = 3 4\t5', path)).toBe('3 4 5');
  expect(
    valueIn('# net.ipv4.conf.eth0.rp_filter = 1\n; x = 1\nnet.ipv4.conf.eth1.rp_filter=1\nbroken', path),
  ).toBeNull();
  expect(valueIn('../../etc/passwd = 1\n((( = 2\n', path)).toBeNull();
});

test("finds the last file that sets the parameter after the agent's file, if it sets another value", () => {
  const file = (name: string, value: string) => ({ name, path: `/etc/sysctl.d/${name}`, text: `${path}=${value}\n` });
  const later = (...files: ReturnType<typeof file>[]) => laterFile(files, path, '90-ours.conf', '1');
  expect(later(file('10-a.conf', '2'))).toBeNull();
  expect(later(file('10-a.conf', '2'), file('99-z.conf', '1'))).toBeNull();
  expect(later(file('95-y.conf', '2'), file('99-z.conf', '1'))).toBeNull();
  expect(later(file('95-y.conf', '1'), file('99-z.conf', '2'))).toBe('/etc/sysctl.d/99-z.conf');
});
