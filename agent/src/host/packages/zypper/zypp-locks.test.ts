import { expect, test } from 'vitest';
import { zyppLocks } from './zypp-locks.ts';

const block = (...lines: string[]) => `${lines.join('\n')}\n`;
const plain = (name: string) =>
  block('type: package', 'match_type: glob', 'case_sensitive: on', `solvable_name: ${name}`);
const list = `${block('# by hand')}
${plain('nginx')}
${block('type: package', 'solvable_name: kernel-default > 5')}
${block('type: package', 'solvable_name: old', 'version: < 2')}
${block('type: patch', 'solvable_name: fix')}

${block('match_type: glob', 'solvable_name: php*')}
${block('solvable_name: lib')}
${block('match_type: exact', 'solvable_name: bash')}
${block('match_type: regex', 'solvable_name: ^z')}
${block('match_type: glob', 'solvable_name: one', 'solvable_name: two')}`;
const version = { epoch: 0, version: '1.0', release: '1' };
const created = zyppLocks.entries('web', version, []);

test('reads the names that a lock of zypper locks at every version', () => {
  expect(zyppLocks.names(list)).toEqual(['nginx', 'php*', '*lib*', 'bash', 'one', 'two']);
});

test('finds the locks of exactly one package', () => {
  expect(zyppLocks.of(list, 'nginx')).toEqual([{ at: 1, line: `\n${plain('nginx')}` }]);
  for (const name of ['kernel-default', 'old', 'fix', 'phpx', 'php*', 'lib', 'zsh', 'one'])
    expect(zyppLocks.of(list, name), name).toEqual([]);
});

test('separates locks at lines that zypper reads as empty', () => {
  const text = `${plain('a')} \r\n${plain('b')}garbage\n${block('type : package', 'match_type: exact', ' solvable_name :c')}`;
  expect(zyppLocks.names(text)).toEqual(['a', 'b', 'c']);
  expect(zyppLocks.names(zyppLocks.replaced(text, 'b', []))).toEqual(['a', 'c']);
  expect(zyppLocks.replaced(zyppLocks.replaced(text, 'b', []), 'b', zyppLocks.of(text, 'b'))).toBe(text);
});

test('adds, replaces, and restores locks of zypper without other changes', () => {
  for (const text of ['', list, `${plain('a')}\n\n`, `\n\n${plain('a')}`]) {
    const added = zyppLocks.replaced(text, 'web', created);
    expect(zyppLocks.names(added), JSON.stringify(text)).toEqual([...zyppLocks.names(text), 'web']);
    expect(zyppLocks.replaced(added, 'web', []), JSON.stringify(text)).toBe(text);
  }
  for (const name of ['nginx', 'bash'])
    expect(zyppLocks.replaced(zyppLocks.replaced(list, name, []), name, zyppLocks.of(list, name)), name).toBe(list);
});

test('separates a lock that is put before others', () => {
  const first = zyppLocks.replaced(plain('b'), 'a', [{ at: 0, line: plain('a') }]);
  expect(first).toBe(`${plain('a')}\n${plain('b')}`);
  expect(zyppLocks.names(zyppLocks.replaced(plain('b').trimEnd(), 'web', created))).toEqual(['b', 'web']);
});

test('keeps the comments around a lock that is removed, and restores the lock between them', () => {
  for (const text of [
    `# why\n${plain('web')}`,
    `# why\n${plain('web')}\n# other\n${plain('nginx')}`,
    `${plain('nginx')}\n# why\n# exactly\n${plain('web')}# end`,
    `${plain('nginx')}# end\n\n# why\n\n${plain('web')}\n${plain('bash')}`,
  ]) {
    const removed = zyppLocks.replaced(text, 'web', []);
    for (const comment of text.match(/#.*/g) ?? []) expect(removed).toContain(comment);
    expect(zyppLocks.names(removed), text).toEqual(zyppLocks.names(text).filter((name) => name !== 'web'));
    expect(zyppLocks.replaced(removed, 'web', zyppLocks.of(text, 'web'))).toBe(text);
  }
});

test('separates a lock from a comment only if a lock without an empty line would follow', () => {
  const text = `# why\n${plain('b')}`;
  expect(zyppLocks.replaced(text, 'a', [{ at: 0, line: plain('a') }])).toBe(`${plain('a')}\n${text}`);
  expect(zyppLocks.replaced(text, 'a', [{ at: 1, line: plain('a') }])).toBe(`# why\n${plain('a')}\n${plain('b')}`);
  expect(zyppLocks.replaced(`${plain('b')}# why\n`, 'a', [{ at: 9, line: plain('a') }])).toBe(
    `${plain('b')}# why\n\n${plain('a')}`,
  );
});
