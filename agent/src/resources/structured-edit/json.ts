import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type Braces, insertInBraces, removeFromBraces } from './braces.ts';
import { eolOf, indentationAt, lineNumber, type Range, type Syntax, spliced, type Tree } from './syntax.ts';
import { isEmpty, jsonOf, nested, type Pointer, type Value } from './value.ts';

/** JSON, with or without comments and trailing commas. */

interface JsonTree extends Tree {
  /** Null for an empty file. */
  readonly root: Node | null;
}

/** @throws Error if a mapping has the same key twice */
function valueOfNode(node: Node, text: string): Value {
  if (node.type === 'array') return (node.children ?? []).map((child) => valueOfNode(child, text));
  if (node.type !== 'object') return node.value as Value;
  const entries = new Map<string, Value>();
  for (const { children } of node.children ?? []) {
    const [key, value] = children as [Node, Node];
    if (entries.has(key.value))
      throw new Error(
        `a mapping has the key ${JSON.stringify(key.value)} twice, on line ${lineNumber(text, key.offset)}`,
      );
    entries.set(key.value, valueOfNode(value, text));
  }
  return entries;
}

const rangeOf = ({ offset, length }: Node): Range => ({ start: offset, end: offset + length });

/** Returns the node of a value, and the property or element that contains it. */
function nodeAt(root: Node | null, pointer: Pointer): { node: Node; entry: Node; owner: Node | null } | null {
  let found = root === null ? null : { node: root, entry: root, owner: null as Node | null };
  for (const key of pointer) {
    const owner: Node | undefined = found?.node;
    const children = owner?.children ?? [];
    const entry: Node | undefined =
      owner?.type === 'array' ? children[Number(key)] : children.find(({ children: pair }) => pair?.[0]?.value === key);
    const node: Node | undefined = owner?.type === 'array' ? entry : entry?.children?.[1];
    if (owner === undefined || entry === undefined || node === undefined) return null;
    found = { node, entry, owner };
  }
  return found;
}

const bracesOf = (node: Node): Braces => ({
  open: node.offset + 1,
  close: node.offset + node.length - 1,
  entries: (node.children ?? []).map(rangeOf),
});

/** Returns the indentation of one level, taken from the first indented line. */
const unitOf = (text: string): string => /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';

const isMultiline = (text: string): boolean => text.trim().includes('\n') || text.trim() === '{}' || text.trim() === '';

function rendered(text: string, value: Value, indentation: string, multiline: boolean): string {
  const json = JSON.stringify(jsonOf(value), null, multiline ? unitOf(text) : undefined);
  return json.replaceAll('\n', `${eolOf(text)}${indentation}`);
}

export const json: Syntax<JsonTree> = {
  name: 'JSON',

  parse(text) {
    if (text.trim() === '') return { text, value: null, root: null };
    const errors: ParseError[] = [];
    const root = parseTree(text, errors, { allowTrailingComma: true });
    const [error] = errors;
    if (error !== undefined)
      throw new Error(`${printParseErrorCode(error.error)} on line ${lineNumber(text, error.offset)}`);
    if (root === undefined) throw new Error('it has no value');
    return { text, value: valueOfNode(root, text), root };
  },

  find({ root }, pointer) {
    const found = nodeAt(root, pointer);
    return found === null ? null : { value: rangeOf(found.node), entry: rangeOf(found.entry) };
  },

  replace({ text, root }, pointer, value) {
    const node = nodeAt(root, pointer)?.node as Node;
    const range = rangeOf(node);
    const old = text.slice(range.start, range.end);
    const isLong = typeof value === 'object' && (old.includes('\n') || (old.length <= 4 && isMultiline(text)));
    return spliced(text, range, rendered(text, value, indentationAt(text, range.start), isLong));
  },

  insert(tree, pointer, depth, value) {
    const { text, root } = tree;
    const key = pointer[depth] as string;
    const inner = nested(pointer.slice(depth + 1), value);
    const owner = nodeAt(root, pointer.slice(0, depth))?.node ?? null;
    const multiline = isMultiline(text);
    if (owner === null) return { text: `${rendered(text, new Map([[key, inner]]), '', true)}\n`, addedBlank: false };
    if (owner.type !== 'object')
      return { text: json.replace(tree, pointer.slice(0, depth), new Map([[key, inner]])), addedBlank: false };
    const pair = owner.children?.at(-1)?.children;
    const gap = pair === undefined ? ': ' : text.slice(rangeOf(pair[0] as Node).end, (pair[1] as Node).offset);
    const colon = /^\s*:[ \t]*$/.test(gap) ? gap : ': ';
    const render = (indentation: string, ownsLine: boolean): string =>
      `${JSON.stringify(key)}${colon}${rendered(text, inner, indentation, ownsLine && !isEmpty(inner))}`;
    const style = { comment: '//', padding: '', multiline, unit: unitOf(text) } as const;
    return { text: insertInBraces(text, bracesOf(owner), render, style), addedBlank: false };
  },

  remove({ text, root }, pointer) {
    const { entry, owner } = nodeAt(root, pointer) as { entry: Node; owner: Node };
    return removeFromBraces(text, bracesOf(owner), (owner.children ?? []).indexOf(entry), '//');
  },
};
