import { expect, test } from 'vitest';
import { ignoredPackages } from './ignored-packages.ts';

const text = `# pacman
[options]
HoldPkg = pacman
#IgnorePkg = commented
IgnorePkg = linux  linux-* hello
Color
IgnorePkg=web

[core]
IgnorePkg = nothing
Server = https://example.org/
`;
const version = { epoch: 0, version: '1', release: '1' };

test('reads the packages that pacman ignores', () => {
  expect(ignoredPackages.names(text)).toEqual(['linux', 'linux-*', 'hello', 'web']);
  expect(ignoredPackages.of(text, 'web')).toEqual([{ at: 6, line: 'IgnorePkg=web' }]);
  for (const none of ['commented', 'nothing', 'linux-lts']) expect(ignoredPackages.of(text, none), none).toEqual([]);
});

test('adds, removes, and restores an ignored package without other changes', () => {
  const added = ignoredPackages.replaced(text, 'lib', ignoredPackages.entries('lib', version, []));
  expect(added).toBe(text.replace('[options]\n', '[options]\nIgnorePkg = lib\n'));
  expect(ignoredPackages.replaced(added, 'lib', [])).toBe(text);
  expect(ignoredPackages.replaced(text, 'hello', [])).toBe(text.replace(' hello', ''));
  for (const name of ['linux', 'hello', 'web']) {
    const removed = ignoredPackages.replaced(text, name, []);
    expect(ignoredPackages.of(removed, name), name).toEqual([]);
    expect(ignoredPackages.replaced(removed, name, ignoredPackages.of(text, name)), name).toBe(text);
  }
});

test('reads and edits lines that end with a carriage return', () => {
  const dos = text.replaceAll('\n', '\r\n');
  expect(ignoredPackages.names(dos)).toEqual(ignoredPackages.names(text));
  const removed = ignoredPackages.replaced(dos, 'hello', []);
  expect(removed).toBe(dos.replace(' hello', ''));
  expect(ignoredPackages.replaced(removed, 'hello', ignoredPackages.of(dos, 'hello'))).toBe(dos);
});

test('restores an ignored package after its line has changed, or its section has moved', () => {
  const locks = ignoredPackages.of(text, 'hello');
  for (const changed of ['[options]\nIgnorePkg = other\n', '[options]\n[core]\n\n\n\n\n\n\n', ''])
    expect(ignoredPackages.names(ignoredPackages.replaced(changed, 'hello', locks)), changed).toContain('hello');
});
