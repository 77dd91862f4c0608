import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runningMode } from '../host/selinux.ts';
import { familyOf, systemdVersion } from './system-facts.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(`${tmpdir()}/muster-facts-`);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text = '') => {
  mkdirSync(dirname(root + path), { recursive: true });
  writeFileSync(root + path, text);
};

test.each([
  ['debian', [], 'debian'],
  ['raspbian', ['debian'], 'debian'],
  ['linuxmint', ['ubuntu', 'debian'], 'debian'],
  ['rocky', ['rhel', 'centos', 'fedora'], 'redhat'],
  ['amzn', ['fedora'], 'redhat'],
  ['opensuse-leap', ['suse', 'opensuse'], 'suse'],
  ['manjaro', ['arch'], 'arch'],
  ['alpine', [], 'alpine'],
  ['void', [], 'void'],
  ['x', ['constructor'], 'x'],
  [null, [], null],
])('finds the family of %s with ID_LIKE %j', (distro, like, family) => {
  expect(familyOf(distro, like)).toBe(family);
});

test('reads the SELinux mode', () => {
  expect(runningMode(root)).toBe('disabled');
  write('/sys/fs/selinux/enforce', '1');
  expect(runningMode(root)).toBe('enforcing');
  write('/sys/fs/selinux/enforce', '0');
  expect(runningMode(root)).toBe('permissive');
});

test.each([
  ['/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so', '252'],
  ['/usr/lib/systemd/libsystemd-shared-257-13.el10.so', '257'],
  ['/usr/lib/systemd/libsystemd-core-252.so', null],
])('reads the systemd version from %s', (path, version) => {
  write(path);
  expect(systemdVersion(root)).toBe(version);
});
