import { pointerKeys } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { restored, valueBefore } from './before.ts';
import { decode, parse, type StructuredFile, withoutSetting, withSetting } from './edit.ts';
import { json } from './json.ts';
import type { Syntax } from './syntax.ts';
import { toml } from './toml.ts';
import { declaredValue, jsonOf, locate, type Value } from './value.ts';
import { yaml } from './yaml.ts';

const syntaxes = { json, yaml, toml } as unknown as Record<'json' | 'yaml' | 'toml', Syntax>;
type Name = keyof typeof syntaxes;

const fileOf = (name: Name): StructuredFile => ({ syntax: syntaxes[name], path: '/f' });

/** Changes a value, and restores the file. @param value undefined to remove it */
function edit(name: Name, text: string, pointer: string, value: unknown): { after: string; back: string } {
  const file = fileOf(name);
  const tree = parse(file, text);
  const keys = pointerKeys(pointer);
  const place = locate(tree.value, keys, '/f');
  const after =
    value === undefined
      ? { text: withoutSetting(file, tree, keys), addedBlank: false }
      : withSetting(file, tree, keys, place, declaredValue(value));
  const before = JSON.parse(JSON.stringify(valueBefore(file, tree, keys, place, after)));
  return { after: after.text, back: restored(file, after.text, keys, before)?.text ?? after.text };
}

const settings = '// head\n{\n  "a": 1, // one\n  "b": {"x": [1, 2]},\n  /* c */\n  "c": "t" // last\n}\n';
const play =
  '# head\na: 1 # one\nb:\n  - x\n  - y # why\nc: # note\n  d: "q"\n  e: |\n    text\n\n# tail\ng: {h: 1}\nn:\n';
const config =
  '# head\n\nt = "x" # t\nd.e = 1\n\n[a]\nk = 1.5\nl = [\n  1,\n]\n\n[[s]]\nn = \'lit\'\n[[s]]\ni = { p = 1 }\n# end\n';

/** The edit, and the lines that it removes and adds. */
const edits: readonly [Name, string, string, unknown, string[], string[]][] = [
  ['json', settings, '/a', 2, ['  "a": 1, // one'], ['  "a": 2, // one']],
  ['json', settings, '/d', 'new', ['  "c": "t" // last'], ['  "c": "t", // last', '  "d": "new"']],
  ['json', settings, '/c', undefined, ['  "b": {"x": [1, 2]},', '  "c": "t" // last'], ['  "b": {"x": [1, 2]}']],
  ['json', settings, '/a', undefined, ['  "a": 1, // one'], []],
  ['json', settings, '/b/x/1', null, ['  "b": {"x": [1, 2]},'], ['  "b": {"x": [1, null]},']],
  ['json', settings, '/b/y', { q: 1 }, ['  "b": {"x": [1, 2]},'], ['  "b": {"x": [1, 2], "y": {"q":1}},']],
  ['json', '{}\n', '/a/b', true, ['{}'], ['{', '  "a": {', '    "b": true', '  }', '}']],
  ['json', '', '/a', 1, [], ['{', '  "a": 1', '}']],
  ['json', '{"a":1,"b":2}', '/c', 3, ['{"a":1,"b":2}'], ['{"a":1,"b":2,"c":3}']],
  ['json', '{\r\n\t"a": 1,\r\n}\r\n', '/b', 2, [], ['\t"b": 2,\r']],
  ['json', '{"__proto__": {}}', '/__proto__/x', 1, ['{"__proto__": {}}'], ['{"__proto__": {"x": 1}}']],
  ['yaml', play, '/a', 2, ['a: 1 # one'], ['a: 2 # one']],
  ['yaml', play, '/b', ['z'], ['  - x', '  - y # why'], ['  - z']],
  ['yaml', play, '/b', 'text', ['b:', '  - x', '  - y # why'], ['b: text']],
  ['yaml', play, '/b/1', 'yes', ['  - y # why'], ['  - "yes" # why']],
  ['yaml', play, '/c/d', 'new', ['  d: "q"'], ['  d: "new"']],
  ['yaml', play, '/c/e', 'one\ntwo\n', ['    text'], ['    one', '    two']],
  ['yaml', play, '/c/e', 5, ['  e: |', '    text'], ['  e: 5']],
  ['yaml', play, '/c/f/g', 5, [], ['  f:', '    g: 5']],
  ['yaml', play, '/c/d', undefined, ['  d: "q"'], []],
  ['yaml', play, '/g/i', 'x: y', ['g: {h: 1}'], ['g: {h: 1, i: "x: y"}']],
  ['yaml', play, '/n', 'v', ['n:'], ['n: v']],
  ['yaml', play, '/n/o', 'v', [], ['  o: v']],
  ['yaml', '- a: 1\n  b: 2\n', '/0/c', 3, [], ['  c: 3']],
  ['yaml', 'a:\n- 1', '/a', [2], ['- 1'], ['- 2']],
  ['yaml', '', '/a', 'on', [], ['a: "on"']],
  ['yaml', 'a: &x 1\nb: *x\n', '/b', 2, ['b: *x'], ['b: 2']],
  ['toml', config, '/t', 'y', ['t = "x" # t'], ['t = "y" # t']],
  ['toml', config, '/d/f', 2, [], ['d.f = 2']],
  ['toml', config, '/a/k', 2, ['k = 1.5'], ['k = 2.0']],
  ['toml', config, '/a/l', [2, 3], ['  1,'], ['  2,', '  3,']],
  ['toml', config, '/a/m', false, [], ['m = false']],
  ['toml', config, '/a', undefined, ['[a]', 'k = 1.5', 'l = [', '  1,', ']'], []],
  ['toml', config, '/s/0/n', "it's", ["n = 'lit'"], ['n = "it\'s"']],
  ['toml', config, '/s/1/i/q', 2, ['i = { p = 1 }'], ['i = { p = 1, q = 2 }']],
  ['toml', config, '/s/1/j/k', 2, [], ['j.k = 2']],
  ['toml', config, '/new/x y/z', 1, [], ['[new."x y"]', 'z = 1']],
  ['toml', 'd = 2020-01-01\n', '/d', '2021-01-01', ['d = 2020-01-01'], ['d = 2021-01-01']],
];

/** Returns the nonempty lines that are in the first text but not in the second. */
const missing = (text: string, other: string): string[] => {
  const left = other.split('\n');
  return text.split('\n').filter((line) => {
    const at = left.indexOf(line);
    if (at !== -1) left.splice(at, 1);
    return at === -1 && line !== '';
  });
};

test.each(edits)(
  'changes only the lines of the value, in %s of %j at %s to %j',
  (name, text, pointer, value, old, now) => {
    const { after, back } = edit(name, text, pointer, value);
    expect(missing(text, after)).toEqual(old.filter((line) => !now.includes(line)));
    expect(missing(after, text)).toEqual(now.filter((line) => !old.includes(line)));
    expect(back).toBe(text);
  },
);

describe('refusals', () => {
  const refusals: readonly [string, Name, string, string, unknown, string][] = [
    ['a key that a mapping has twice', 'json', '{"a":1,"a":2}', '/a', 3, 'has the key "a" twice, on line 1'],
    ['a key that a mapping has twice', 'yaml', 'a: 1\n"a": 2\n', '/a', 3, 'has the key "a" twice, on line 2'],
    ['a key that a mapping has as text and as a number', 'yaml', '1: 1\n"1": 2\n', '/1', 3, 'has the key "1" twice'],
    ['a key that a table has twice', 'toml', 'a = 1\na = 2\n', '/a', 3, 'multiple times is invalid, on line 2'],
    ['a file that is cut off', 'json', '{"a": {"b": 1}', '/a', 3, 'CloseBraceExpected on line 1'],
    ['a wrong indentation', 'yaml', 'a:\n   b: 1\n  c: 2\n', '/a/b', 3, 'on line 3'],
    ['several documents', 'yaml', 'a: 1\n---\nb: 1\n', '/a', 2, 'several documents, on line 2'],
    ['a value that an anchor shares', 'yaml', 'a: &x 1\nb: *x\n', '/a', 2, 'without another change'],
    ['a value behind an alias', 'yaml', 'a: &x {k: 1}\nb: *x\n', '/b/k', 2, 'declare the value where its anchor'],
    ['a value with a tag', 'yaml', 'a: !vault x\n', '/a', 2, 'has a tag'],
    ['an element that a list lacks', 'json', '{"a": [1]}', '/a/1', 2, 'has no element "1"; declare the whole list'],
    ['an element of a list to remove', 'json', '{"a": [1, 2]}', '/a/0', undefined, 'without another change'],
    ['a key below text', 'toml', 'a = "x"\n', '/a/b', 2, '/a is text, which has no keys'],
    ['a table to replace', 'toml', '[a]\nb = 1\n', '/a', 2, 'declare its values one by one'],
    ['null', 'toml', 'a = [1]\n', '/a', [null], 'TOML has no null'],
    ['a file nested too deeply', 'json', '['.repeat(100_000), '/0', 1, 'nested too deeply'],
    ['a bomb of aliases', 'yaml', bomb(), '/z', 1, 'more than 100000 values'],
  ];
  test.each(refusals)('refuses to edit %s (%s)', (_what, name, text, pointer, value, message) => {
    expect(() => edit(name, text, pointer, value)).toThrow(message);
  });

  test('refuses a file that is not UTF-8, or too large', () => {
    expect(() => decode(Buffer.from([0x61, 0xff]), '/f')).toThrow('/f is not UTF-8');
    expect(() => decode(Buffer.alloc(257 * 1024), '/f')).toThrow('only in files up to 256 KiB');
  });
});

function bomb(): string {
  const lines = ['l0: &l0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let level = 1; level < 8; level++)
    lines.push(
      `l${level}: &l${level} [${Array(10)
        .fill(`*l${level - 1}`)
        .join(', ')}]`,
    );
  return `${lines.join('\n')}\n`;
}

const scalar = fc.oneof(
  fc.constantFrom('', 'x', 'a b', 'yes', '1', '#', 'x: y', '- z', '"q"', "it's", 'é', 'two\nlines', ' space '),
  fc.constantFrom(0, -1, 1.5, true, false),
);
const value = fc.oneof(
  { weight: 3, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  {
    weight: 1,
    arbitrary: fc.dictionary(fc.constantFrom('x', 'y z', '0', 'k.l'), scalar, { maxKeys: 3, noNullPrototype: true }),
  },
);
const pointers = fc.constantFrom('/a', '/b', '/b/c', '/b/d/e', '/x y', '/l/0', '/new/one', '/s/0/n');

/** Files in which values are next to all kinds of comments, blank lines, quotes, and brackets. */
const files: readonly [Name, string][] = [
  ['json', settings],
  ['json', '{\n\t"b": {\n\t\t"c": 1, /* c */ "d": {}\n\t},\n\t"l": [\n\t\t1,\n\t\t2\n\t],\n\t"s": [{"n": 1}]}'],
  ['json', '{"a":[],"b":{"c":null,"d":{"e":1}},"l":[1]}'],
  ['json', '{\n  // nothing\n}\n'],
  ['yaml', play],
  [
    'yaml',
    '---\nb:\n    c: |-\n        text\n\n        more\n    # note\n    d:\n        e: [1,\n            2]\nl:\n- 1\n-   n: 2\ns:\n  - n: 1\n    o: 2',
  ],
  ['yaml', "a: 'one\n  two'\r\nb: {c: 1, d: {e: x}} # end\r\nx y: >\r\n  folded\r\n"],
  ['yaml', '# nothing\n'],
  ['toml', config],
  ['toml', 'l = [1, 2]\n"x y" = """\ntwo\n"""\n[b]\n  c = 1\n\n  # about d\n  [b.d]\n  e = "x"\n\n[[s]]\nn = 1'],
  ['toml', '# nothing\r\n'],
];

test('sets exactly the declared value, changes nothing the second time, and restores every byte', () => {
  let changed = 0;
  fc.assert(
    fc.property(fc.constantFrom(...files), pointers, value, ([name, text], pointer, declared) => {
      const file = fileOf(name);
      let result: ReturnType<typeof edit>;
      try {
        result = edit(name, text, pointer, declared);
      } catch (error) {
        // The pointer does not match this file's structure.
        expect((error as Error).constructor.name).toBe('HostFailure');
        return;
      }
      changed++;
      const place = locate(parse(file, result.after).value, pointerKeys(pointer), '/f');
      expect(place.found && jsonOf(place.value as Value)).toEqual(declared);
      expect(result.back).toBe(text);
    }),
    { numRuns: 300 },
  );
  expect(changed).toBeGreaterThan(100);
});
