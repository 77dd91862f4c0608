import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinLines, positionOf, splitLines } from '../text-edit/lines.ts';
import { restored, type SettingBefore, settingBefore } from './before.ts';
import { hasSection, insertionIndex, needsBlankLine, settingsIn, withSetting } from './ini.ts';
import type { IniUnix, SeenSetting } from './seen.ts';

const edit = (text: string, section: string | null, key: string, value: string | null): string =>
  joinLines(withSetting(splitLines(Buffer.from(text)), { section, key }, value)).toString();

describe('setting a value', () => {
  test.each([
    ['replaces only the value', '[a]\n  x : 1\ny=2\n', 'a', 'x', '3', '[a]\n  x : 3\ny=2\n'],
    ['chooses the setting of its section', '[a]\nx=1\n[b]\nx=2\n', 'b', 'x', '3', '[a]\nx=1\n[b]\nx=3\n'],
    ['ignores settings in comments', '[a]\n#x=1\n;x=2\n', 'a', 'x', '3', '[a]\nx = 3\n#x=1\n;x=2\n'],
    [
      'adds below the last setting, in its style',
      '[a]\n\tx=1\n\n# b\n[b]\n',
      'a',
      'y',
      '2',
      '[a]\n\tx=1\n\ty=2\n\n# b\n[b]\n',
    ],
    ['adds a section', 'x = 1', 'new one', 'y', '2', 'x = 1\n\n[new one]\ny = 2'],
    ['adds to a part without a section', '# head\n\n[a]\nx=1\n', null, 'y', '2', '# head\ny=2\n\n[a]\nx=1\n'],
    ['adds to an empty file', '', 'a', 'x', '1', '[a]\nx = 1\n'],
    ['keeps CRLF', '[a]\r\nx = 1\r\n', 'a', 'y', '2', '[a]\r\nx = 1\r\ny = 2\r\n'],
    ['writes a key without a value', '[mysqld]\nport = 1\n', 'mysqld', 'skip-x', null, '[mysqld]\nport = 1\nskip-x\n'],
    ['gives a key that stands alone a value', '[a]\nx\n', 'a', 'x', '1', '[a]\nx = 1\n'],
    ['accepts a key that begins another key', '[a]\nxy = 1\n', 'a', 'x', '2', '[a]\nxy = 1\nx = 2\n'],
    ['accepts a key with a colon', '[a]\nx:y = 1\n', 'a', 'x:y', '2', '[a]\nx:y = 2\n'],
  ])('edits a setting: %s', (_what, text, section, key, value, after) => {
    expect(edit(text, section, key, value)).toBe(after);
  });

  test('recognizes a value that continues on the next line', () => {
    const continues = (text: string) =>
      settingsIn(splitLines(Buffer.from(text)), { section: 'a', key: 'x' })[0]?.continues;
    expect(continues('[a]\nx = 1\n  2\n')).toBe(true);
    expect(continues('[a]\nx = 1 \\\n2\n')).toBe(true);
    expect(continues('[a]\nx = 1\n  y = 2\n')).toBe(false);
    expect(continues('[a]\nx = 1\n  # 2\n')).toBe(false);
  });
});

const lineText = fc.oneof(
  fc.constantFrom('', ' ', '# note', ';x = 1', '[a]', '[b]', ' [a] ; note', 'x', 'other = 1', 'y:2', '  z=3', 'junk ['),
  fc.constantFrom('x = 1', 'x=2', 'x :3 '),
);
const fileText = fc
  .tuple(fc.array(lineText, { maxLength: 12 }), fc.constantFrom('\n', '\r\n'), fc.boolean())
  .map(([lines, end, isEnded]) => lines.join(end) + (isEnded && lines.length > 0 ? end : ''));

const place = { section: 'a', key: 'x' };
const resource = { body: { path: '/f', ...place } } as IniUnix;

function beforeOf(text: string): SettingBefore {
  const lines = splitLines(Buffer.from(text));
  const found = settingsIn(lines, place)[0] ?? null;
  const index = found?.index ?? insertionIndex(lines, place);
  return settingBefore({
    found,
    position: positionOf(lines, index, found === null ? 0 : 1),
    hasSection: hasSection(lines, place),
    needsBlankLine: needsBlankLine(lines),
  } as SeenSetting);
}

test('restores every byte, and finds exactly the value that it set', () => {
  fc.assert(
    fc.property(fileText, fc.constantFrom('v', 'a b', '"q"'), (text, value) => {
      const lines = splitLines(Buffer.from(text));
      fc.pre(settingsIn(lines, place).length <= 1);
      const after = withSetting(lines, place, value);
      expect(settingsIn(after, place).map((setting) => setting.value)).toEqual([value]);
      expect(joinLines(withSetting(after, place, value))).toEqual(joinLines(after));
      const back = restored(resource, beforeOf(text), after);
      expect(joinLines(back?.lines ?? after).toString()).toBe(text);
    }),
    { numRuns: 2000 },
  );
});

test('reads a line of many spaces in linear time', () => {
  for (const line of [`[${' '.repeat(100_000)}`, `x${' '.repeat(100_000)}`, `[a]${' '.repeat(100_000)}x`])
    expect(edit(`[a]\n${line}\n`, 'a', 'y', '1')).toContain('y = 1');
});
