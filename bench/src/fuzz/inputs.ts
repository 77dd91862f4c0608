import fc from 'fast-check';
import { codePoint } from '../../../protocol/test/code-point.ts';

/** A valid input to mutate: an optional head, and a body, which is often JSON. */
export interface Example {
  /** Text before the body, such as the request line and headers. */
  readonly head?: string;
  readonly body: string | Uint8Array;
}

/** Parsed JSON, which can represent duplicate keys and numbers beyond the range of a double. */
type Tree =
  | { kind: 'object'; entries: [key: string, value: Tree][] }
  | { kind: 'list'; items: Tree[] }
  | { kind: 'leaf'; text: string };

const leaf = (value: unknown): Tree => ({ kind: 'leaf', text: JSON.stringify(value) });
const written = (text: string): Tree => ({ kind: 'leaf', text });

/** Parses JSON. @returns null if the text is not JSON */
function treeOf(text: string): Tree | null {
  try {
    const of = (value: unknown): Tree => {
      if (Array.isArray(value)) return { kind: 'list', items: value.map(of) };
      if (typeof value !== 'object' || value === null) return leaf(value);
      return { kind: 'object', entries: Object.entries(value).map(([key, inner]) => [key, of(inner)]) };
    };
    return of(JSON.parse(text));
  } catch {
    return null;
  }
}

function textOf(tree: Tree): string {
  if (tree.kind === 'leaf') return tree.text;
  if (tree.kind === 'list') return `[${tree.items.map(textOf).join(',')}]`;
  return `{${tree.entries.map(([key, value]) => `${JSON.stringify(key)}:${textOf(value)}`).join(',')}}`;
}

const hostileTexts = [
  ...['', '\0', '\u0085\u009b31m', '\u202e\u2066', '\u2028', '\ufeff', '\ud800', '\udfff\ud800', 'e\u0301'.repeat(50)],
  ...['__proto__', 'constructor', 'prototype', 'toString', '../../etc/passwd', '${{ secret.a }}', '%00%ff', '\r\n\r\n'],
  ...['a'.repeat(255), 'a'.repeat(4_097), 'a'.repeat(100_000), '\u{1f600}'.repeat(10_000), ' '.repeat(50_000)],
  ...[`${'a'.repeat(40)}!`, `${'a-'.repeat(20_000)}!`, `${'/a'.repeat(20_000)}\n`, `${'0'.repeat(20_000)}x`],
];
const hostileNumbers = [
  ...['-0', '-1', '1e999', '-1e999', '1e-999', '0.1', '9007199254740993', '-9007199254740993', '4294967296'],
  ...['2147483648', '18446744073709551616', `1${'0'.repeat(400)}`, `0.${'0'.repeat(400)}1`],
];
const hostileKeys = [
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  '',
  '\ud800',
  '\u202e',
  'k'.repeat(5_000),
];

const depths = [1, 2, 33, 500, 5_000];
const counts = [2, 17, 300, 5_000, 50_000];

const hostileLeaf: fc.Arbitrary<Tree> = fc.oneof(
  fc.constantFrom(...hostileTexts).map(leaf),
  fc.constantFrom(...hostileNumbers).map(written),
  fc.constantFrom('null', 'true', '[]', '{}', '"\\ud800"', '"\\u0000"', '{"__proto__":{"polluted":true}}').map(written),
  fc.string({ unit: codePoint, maxLength: 40 }).map(leaf),
);

type TreeEdit = (node: Tree, other: Tree) => Tree;

/** Nests a node `depth` times. Builds text, because a recursive serializer could overflow the stack. */
function wrapped(node: Tree, depth: number, key: string | null): Tree {
  const [open, close] = key === null ? ['[', ']'] : [`{${JSON.stringify(key)}:`, '}'];
  return written(open.repeat(depth) + textOf(node) + close.repeat(depth));
}

/** Maximum number of characters that one edit adds, so that a few nested edits fit into memory. */
const maxAdded = 1_500_000;

/** Returns a list or an object with many copies of its first item, or a leaf with its text repeated. */
function repeated(node: Tree, count: number): Tree {
  const text = textOf(node);
  if (node.kind === 'leaf') return leaf(text.slice(0, 100).repeat(count).slice(0, maxAdded));
  const item = textOf((node.kind === 'object' ? node.entries[0]?.[1] : node.items[0]) ?? leaf(0));
  const max = Math.min(count, Math.floor(maxAdded / (item.length + 10)));
  const more = Array.from({ length: max }, (_, at) => (node.kind === 'object' ? `"k${at}":${item}` : item));
  const inner = [text.slice(1, -1), ...more].filter((part) => part !== '').join(',');
  return written(node.kind === 'object' ? `{${inner}}` : `[${inner}]`);
}

const treeEdit: fc.Arbitrary<TreeEdit> = fc.oneof(
  hostileLeaf.map(
    (value): TreeEdit =>
      () =>
        value,
  ),
  fc.tuple(fc.constantFrom(...hostileKeys), hostileLeaf).map(
    ([key, value]): TreeEdit =>
      (node) =>
        node.kind === 'object' ? { kind: 'object', entries: [...node.entries, [key, value]] } : value,
  ),
  fc.tuple(fc.nat(), hostileLeaf).map(
    ([at, value]): TreeEdit =>
      (node) => {
        if (node.kind !== 'object' || node.entries.length === 0) return node;
        // Duplicates a key.
        return { kind: 'object', entries: [...node.entries, [node.entries[at % node.entries.length]![0], value]] };
      },
  ),
  fc.nat().map(
    (at): TreeEdit =>
      (node) => {
        if (node.kind === 'object')
          return { kind: 'object', entries: node.entries.filter((_, index) => index !== at % node.entries.length) };
        return node.kind === 'list' ? { kind: 'list', items: node.items.slice(1) } : leaf(null);
      },
  ),
  fc.constantFrom(...counts).map(
    (count): TreeEdit =>
      (node) =>
        repeated(node, count),
  ),
  fc.tuple(fc.constantFrom(...depths), fc.constantFrom(null, 'a', '__proto__')).map(
    ([depth, key]): TreeEdit =>
      (node) =>
        wrapped(node, depth, key),
  ),
  fc.constant<TreeEdit>((_, other) => other),
);

/**
 * Returns the nodes of a tree, each with a function that replaces it. Omits nodes deeper than 40 levels, and all but
 * the first items of large lists and objects, because an edit may have created them.
 */
function slots(tree: Tree): { node: Tree; replace: (next: Tree) => void }[] {
  const found: { node: Tree; replace: (next: Tree) => void }[] = [];
  const visit = (node: Tree, replace: (next: Tree) => void, depth: number) => {
    found.push({ node, replace });
    if (depth > 40) return;
    if (node.kind === 'list')
      for (const [at, item] of node.items.slice(0, 50).entries())
        visit(item, (next) => node.items.splice(at, 1, next), depth + 1);
    if (node.kind === 'object')
      for (const entry of node.entries.slice(0, 200)) visit(entry[1], (next) => entry.splice(1, 1, next), depth + 1);
  };
  visit(tree, () => {}, 0);
  return found;
}

function editTree(text: string, other: string, edits: readonly { at: number; edit: TreeEdit }[]): string {
  const root = treeOf(text);
  if (root === null) return text;
  const holder: Tree = { kind: 'list', items: [root] };
  const donor = treeOf(other);
  for (const { at, edit } of edits) {
    // Omits the first node, which holds the tree and must stay a list.
    const nodes = slots(holder).slice(1);
    const { node, replace } = nodes[at % nodes.length]!;
    const donors = donor === null ? [] : slots(donor);
    // Copies the tree, because a tree that contains itself cannot be serialized.
    replace(edit(node, written(textOf(donors[at % Math.max(1, donors.length)]?.node ?? leaf('')))));
  }
  return textOf(holder.items[0]!);
}

/** Edits bytes, represented as Latin-1 text. */
type BytesEdit = (text: string, at: number) => string;

const fragments = [
  ...[
    '\x00',
    '\x1b[2J',
    '\xff\xfe',
    '\xc0\xaf',
    '\xed\xa0\x80',
    '\xf4\x90\x80\x80',
    '\xef\xbb\xbf',
    '\xe2\x80\xae',
    '\xc2\x9b',
  ],
  ...[
    '"',
    "'",
    '\\',
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    ',',
    ':',
    '=',
    '!',
    '&a ',
    '*a ',
    '- ',
    '? ',
    '| ',
    '>-\n',
    '#',
    '\n',
    '\t',
  ],
  ...[
    '%',
    '%zz',
    '&',
    '?',
    '/',
    '//',
    '..',
    ' in (',
    ' notin (',
    '<<: *a',
    '!!binary ',
    '---\n',
    '%YAML 1.2\n',
    '${{ ',
    ' }}',
  ],
  ...[
    '(a+)+',
    '(?:',
    '[^',
    '{1,99999}',
    '{0,1000}{0,1000}',
    '\\p{L}',
    '(?<=',
    '|',
    '.*.*.*',
    '$',
    '0x',
    '1e9',
    '-',
    '~',
    '@',
  ],
  ...['__proto__', 'null', 'true', '.inf', '.nan', '0o17', '9'.repeat(400), 'a'.repeat(3_000)],
];
const opens = [
  ['[', ']'],
  ['{"a":', '}'],
  ['(', ')'],
  ['- ', ''],
  ['"', '"'],
  ['(?:', ')*'],
  ['&a [', ']'],
] as const;

const bytesEdit: fc.Arbitrary<BytesEdit> = fc.oneof(
  fc.constantFrom(...fragments).map(
    (piece): BytesEdit =>
      (text, at) =>
        text.slice(0, at) + piece + text.slice(at),
  ),
  fc.tuple(fc.constantFrom(...fragments), fc.constantFrom(...counts)).map(
    ([piece, count]): BytesEdit =>
      (text, at) =>
        text.slice(0, at) + piece.repeat(Math.min(count, 1_000_000 / piece.length)) + text.slice(at),
  ),
  fc.tuple(fc.nat(64), fc.constantFrom(...counts)).map(
    ([length, count]): BytesEdit =>
      (text, at) =>
        text.slice(0, at) +
        text.slice(at, at + length).repeat(Math.min(count, 1_000_000 / (length + 1))) +
        text.slice(at),
  ),
  fc.nat(64).map(
    (length): BytesEdit =>
      (text, at) =>
        text.slice(0, at) + text.slice(at + length),
  ),
  fc.constant<BytesEdit>((text, at) => text.slice(0, at)),
  fc.nat(255).map(
    (byte): BytesEdit =>
      (text, at) =>
        text.slice(0, at) + String.fromCharCode(byte) + text.slice(at + 1),
  ),
  fc.tuple(fc.constantFrom(...opens), fc.constantFrom(...depths)).map(
    ([[open, close], depth]): BytesEdit =>
      (text, at) =>
        text.slice(0, at) + open.repeat(depth) + text.slice(at, at + 20) + close.repeat(depth) + text.slice(at + 20),
  ),
);

const latin1 = (part: string | Uint8Array): string => Buffer.from(part as string).toString('latin1');

/**
 * Generates mutations of the examples: edits of the JSON tree if the body is JSON, then edits of the bytes. Shrinks to fewer
 * edits.
 * @param max maximum number of bytes; longer inputs are truncated, because the transport would refuse them
 */
export function inputsNear(examples: readonly Example[], max: number): fc.Arbitrary<Uint8Array> {
  return fc
    .record({
      of: fc.nat(examples.length - 1),
      other: fc.nat(examples.length - 1),
      tree: fc.array(fc.record({ at: fc.nat(), edit: treeEdit }), { maxLength: 4 }),
      bytes: fc.oneof(
        { weight: 2, arbitrary: fc.constant([]) },
        {
          weight: 1,
          arbitrary: fc.array(fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), edit: bytesEdit }), {
            maxLength: 3,
          }),
        },
      ),
      whole: fc.boolean(),
    })
    .map(({ of, other, tree, bytes, whole }) => {
      const { head = '', body } = examples[of]!;
      const text = Buffer.from(body as string).toString('utf8');
      const edited =
        tree.length === 0
          ? latin1(body)
          : latin1(editTree(text, Buffer.from(examples[other]!.body as string).toString(), tree));
      let fixed = latin1(head);
      let rest = edited;
      // Puts all edits in the head in half of the inputs, because edits at random positions would rarely hit it.
      for (const { at, edit } of bytes)
        if (fixed !== '' && whole) fixed = edit(fixed, Math.floor(at * fixed.length));
        else rest = edit(rest, Math.floor(at * rest.length));
      return Buffer.from(fixed + rest, 'latin1').subarray(0, max);
    });
}
