import { expect, test } from 'vitest';
import { lockLine, lockListIn, locksOf, parseLocks, withLocks } from './version-locks.ts';

const list = `# Added lock on Mon Jan  1 10:00:00 2024
nginx-2:1.24.0-1.fc40.*
python3-dnf-0:4.14.0-3.*

bash-*:5.2-1.*
plain
python3-foo-bar
old-style-1.0-1.noarch
!never-0:1.0-1.*
lib*
`;

test('reads every versionlock notation', () => {
  expect(parseLocks(list)).toEqual(['nginx', 'python3-dnf', 'bash', 'plain', 'python3-foo-bar', 'old-style', 'lib*']);
});

test('finds the list in the settings of the plugin', () => {
  expect(lockListIn('[main]\nenabled = 1\n')).toBe('/etc/dnf/plugins/versionlock.list');
  expect(lockListIn('[main]\n# locklist = /no\nlocklist = /etc/locks.list\n')).toBe('/etc/locks.list');
});

test('finds the locks of one package, but ignores exclusions and patterns', () => {
  expect(locksOf(list, 'nginx')).toEqual([{ at: 1, line: 'nginx-2:1.24.0-1.fc40.*' }]);
  for (const name of ['never', 'libx', 'python3', 'old']) expect(locksOf(list, name), name).toEqual([]);
});

test('adds, replaces, and restores locks without other changes', () => {
  const line = lockLine('web', { epoch: 0, version: '1.0', release: '1' });
  expect(line).toBe('web-0:1.0-1.*');
  const added = withLocks(list, 'web', [{ at: 0, line }]);
  expect(added).toBe(`${line}\n${list}`);
  expect(withLocks(added, 'web', [])).toBe(list);
  for (const name of ['nginx', 'bash', 'old-style'])
    expect(withLocks(withLocks(list, name, []), name, locksOf(list, name)), name).toBe(list);
  expect(withLocks('', 'web', [{ at: 7, line }])).toBe(`${line}\n`);
  expect(withLocks('a', 'a', [])).toBe('');
});
