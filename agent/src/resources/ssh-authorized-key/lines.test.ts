import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { added, commented, linesWith, onlyKeys, parseKeyLine, restoreLines, without, withoutAll } from './lines.ts';

const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;
const other = `ssh-rsa AAAAB3NzaC1yc2E${'B'.repeat(40)}==`;

describe('a line', () => {
  test('parses a line of authorized_keys into options, key, and comment', () => {
    expect(parseKeyLine(`${key} ann at home `)).toEqual({ options: '', key, comment: 'ann at home' });
    expect(parseKeyLine(`  ${key.replace(' ', '\t  ')}\r`)).toEqual({ options: '', key, comment: '' });
    expect(parseKeyLine(`no-pty,command="echo \\"a b\\" ${other}" ${key} c`)).toEqual({
      options: `no-pty,command="echo \\"a b\\" ${other}"`,
      key,
      comment: 'c',
    });
    expect(parseKeyLine(`restrict ${key}`)?.options).toBe('restrict');
  });

  test('finds no key in a comment, an empty line, or an invalid line', () => {
    for (const line of ['', '   ', `# ${key}`, 'ssh-ed25519', `command="${key}"`, 'hello world'])
      expect(parseKeyLine(line)).toBeNull();
  });
});

test('ignores a key in a comment, in options, or as part of another key', () => {
  expect(linesWith(`# ${key}\ncommand="${key}" ${other}\n${key}A\n`, key)).toEqual([]);
});

test('adds a key on a separate line, and removes that line', () => {
  expect(added('', key, '')).toBe(`${key}\n`);
  expect(added(other, key, 'ci')).toBe(`${other}\n${key} ci\n`);
  expect(without(added(other, key, 'ci'), key, true)).toBe(other);
  expect(without(`${key} ours\n${other}\n`, key, false)).toBe(`${other}\n`);
  // The line with options was added by a user, so it is kept.
  expect(without(`restrict ${key}\n${key} ours\n`, key, false)).toBe(`restrict ${key}\n`);
});

test('changes the comment of a key and keeps its options', () => {
  expect(commented(`${other} x\nrestrict ${key} old\n`, key, 'new')).toBe(`${other} x\nrestrict ${key} new\n`);
  expect(commented(`${key} old`, key, '')).toBe(key);
});

test('returns the keys of a file only if it contains nothing else', () => {
  expect(onlyKeys(`${key}\n\n${other} x\n`)).toEqual([key, other]);
  expect(onlyKeys(`# note\n${key}\n`)).toBeNull();
});

describe('edits of any file', () => {
  const line = fc.oneof(
    fc.constantFrom('', '# note', `# ${key}`, `${other} theirs`, `restrict ${other}`, 'garbage \xff'),
    fc.integer({ min: 0, max: 9 }).map((n) => `${other.slice(0, -3)}${n}== n${n}`),
  );
  const file = fc
    .tuple(fc.array(line), fc.boolean())
    .map(([lines, closed]) => (closed ? lines.map((one) => `${one}\n`).join('') : lines.join('\n')));

  test('restores every byte of the file when an added key is removed', () => {
    fc.assert(
      fc.property(file, fc.constantFrom('', 'ci'), (text, comment) => {
        const open = text !== '' && !text.endsWith('\n');
        const there = added(text, key, comment);
        expect(linesWith(there, key)).toHaveLength(1);
        expect(without(there, key, open)).toBe(text);
      }),
    );
  });

  test("restores a key's removed lines to their positions", () => {
    const mine = fc.constantFrom(key, `${key} a`, `restrict ${key} b`);
    const unique = fc.uniqueArray(fc.integer({ min: 0, max: 99 })).map((all) => all.map((n) => `# ${n}`));
    fc.assert(
      fc.property(unique, fc.array(fc.tuple(mine, fc.nat())), (rest, own) => {
        const lines = [...rest];
        for (const [text, at] of own) lines.splice(at % (lines.length + 1), 0, text);
        const text = lines.map((one) => `${one}\n`).join('');
        const taken = linesWith(text, key);
        const left = withoutAll(text, key);
        expect(linesWith(left, key)).toEqual([]);
        expect(restoreLines(left, taken)).toBe(text);
      }),
    );
  });
});
