import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  stringify,
  type YAMLMap,
} from 'yaml';
import { insertLines, joinText, removeLines, splitText } from '../text-edit/lines.ts';
import { insertInBraces, removeFromBraces } from './braces.ts';
import { eolOf, lineNumber, lineStart, type Range, type Syntax, spliced, startsLine, type Tree } from './syntax.ts';
import { isEmpty, nested, type Pointer, type Value } from './value.ts';

/** YAML 1.2. Strings are quoted if a YAML 1.1 parser would interpret them as another type. */

interface YamlTree extends Tree {
  readonly document: Document.Parsed;
}

/** Maximum number of values; aliased values count once per alias. */
const maximumValues = 100_000;

const startOf = (node: Node): number => node.range?.[0] ?? 0;
const endOf = (node: Node): number => node.range?.[1] ?? 0;

function keyOf(key: unknown, text: string): string {
  if (!isScalar(key)) return key === null ? '' : text.slice(startOf(key as Node), endOf(key as Node));
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
}

/** Converts a document to a value, in linear time. */
class Reader {
  readonly #text: string;
  /** The nodes that have an anchor so far. An anchor may be redefined later. */
  readonly #anchors = new Map<string, unknown>();
  #left = maximumValues;
  #aliases = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** @throws Error if a mapping has the same key twice, or if there are too many values */
  value(node: unknown): Value {
    if (--this.#left < 0) throw new Error(`it has more than ${maximumValues} values`);
    if (isAlias(node)) return this.#resolved(node);
    if (!isScalar(node) && !isSeq(node) && !isMap(node)) return null;
    if (node.anchor !== undefined && this.#aliases === 0) this.#anchors.set(node.anchor, node);
    if (isSeq(node)) return node.items.map((item) => this.value(item));
    if (isMap(node)) return this.#mapping(node);
    const { value } = node;
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
  }

  #resolved({ source }: Alias): Value {
    const node = this.#anchors.get(source);
    if (node === undefined) throw new Error(`it has no anchor for the alias *${source.slice(0, 100)}`);
    this.#aliases++;
    const value = this.value(node);
    this.#aliases--;
    return value;
  }

  #mapping({ items }: YAMLMap): Value {
    const entries = new Map<string, Value>();
    for (const { key, value } of items) {
      const name = keyOf(key, this.#text);
      if (entries.has(name)) {
        const line = lineNumber(this.#text, startOf(key as Node));
        throw new Error(`a mapping has the key ${JSON.stringify(name)} twice, on line ${line}`);
      }
      if (isScalar(key) && key.anchor !== undefined && this.#aliases === 0) this.#anchors.set(key.anchor, key);
      entries.set(name, this.value(value));
    }
    return entries;
  }
}

interface Found {
  /** Null for a key without a value. */
  readonly node: Node | null;
  readonly pair: Pair<Node, Node | null> | null;
  readonly owner: YAMLMap | null;
}

function nodeAt({ document, text }: YamlTree, pointer: Pointer): Found {
  let found: Found = { node: document.contents as Node | null, pair: null, owner: null };
  for (const key of pointer) {
    const { node } = found;
    if (isAlias(node)) throw new Error('an alias (*) refers to the value; declare the value where its anchor (&) is');
    if (isSeq(node)) found = { node: node.items[Number(key)] as Node, pair: null, owner: null };
    else if (isMap(node)) {
      const pair = node.items.find((item) => keyOf(item.key, text) === key) as Pair<Node, Node | null>;
      found = { node: pair.value, pair, owner: node as YAMLMap };
    }
  }
  return found;
}

const styles = { lineWidth: 0, compat: 'yaml-1.1', doubleQuotedAsJSON: true } as const;

/** Returns the value on one line. */
const inline = (value: Value | Scalar): string =>
  stringify(value, { ...styles, collectionStyle: 'flow', blockQuote: false, flowCollectionPadding: false }).trimEnd();

/** Returns the lines of an entry in block style. */
function block(text: string, key: string, value: Value): string[] {
  const indent = /\n( {1,8})[^\s#-]/.exec(text)?.[1]?.length ?? 2;
  const indentSeq = !/^( *)[^\s#-][^\n]*:[ \t]*\r?\n\1- /m.test(text);
  return stringify(new Map([[key, value]]), { ...styles, indent, indentSeq })
    .trimEnd()
    .split('\n');
}

/** Returns the text of a value that replaces another value in place, with the same quoting style. */
function replacement(value: Value, node: Node | null): string {
  const type = isScalar(node) ? node.type : undefined;
  if (typeof value !== 'string' || (type !== Scalar.QUOTE_DOUBLE && type !== Scalar.QUOTE_SINGLE)) return inline(value);
  const scalar = new Scalar(value);
  scalar.type = type;
  return inline(scalar);
}

const isBlock = (node: Node | null): boolean =>
  isMap(node) || isSeq(node) ? node.flow !== true : isScalar(node) && /^BLOCK/.test(String(node.type));

/** Returns the range of a pair in flow style. */
const entryOf = ({ key, value }: Pair<Node, Node | null>): Range => ({
  start: startOf(key),
  end: Math.max(endOf(key), value === null ? 0 : endOf(value)),
});

/** Returns the offset after the `:` of a pair. */
function behindColon(text: string, { key, value }: Pair<Node, Node | null>): number {
  const from = endOf(key);
  const at = text.indexOf(':', from);
  return at === -1 || (value !== null && at > startOf(value)) ? from : at + 1;
}

/** Returns the first line of a pair, and the line after its last one. */
function linesOfPair(text: string, pair: Pair<Node, Node | null>): { first: number; end: number } {
  const { key, value } = pair;
  const last = Math.max(behindColon(text, pair), value === null ? 0 : endOf(value));
  const line = lineNumber(text, last) - 1;
  const isEnded = text[last - 1] === '\n' && value !== null && endOf(value) === last;
  return { first: lineNumber(text, startOf(key)) - 1, end: isEnded ? line : line + 1 };
}

const indented = (lines: readonly string[], by: number): string[] =>
  lines.map((line) => (line === '' ? '' : ' '.repeat(by) + line));

const columnOf = (text: string, at: number): number => at - lineStart(text, at);

/** Replaces a value in block style. */
function replaceBlock(text: string, { node, pair }: Found, value: Value): string {
  const range: Range = { start: startOf(node as Node), end: endOf(node as Node) };
  const isContainer = isMap(node) || isSeq(node);
  const ending = text[range.end - 1] === '\n' ? eolOf(text) : '';
  const isLong =
    typeof value === 'string' ? value.includes('\n') : !isEmpty(value) && typeof value === 'object' && isContainer;
  if (isContainer && !startsLine(text, range.start)) return spliced(text, range, inline(value) + ending);
  const from = isContainer ? lineStart(text, range.start) : range.start;
  if (isLong && isContainer === (typeof value !== 'string') && (!Array.isArray(value) || value.length > 0)) {
    const [head = '', ...body] = block(text, 'k', value);
    const strip = Math.min(...body.filter((line) => line !== '').map((line) => line.length - line.trimStart().length));
    const column = isContainer
      ? columnOf(text, range.start)
      : (/\n( +)\S/.exec(text.slice(range.start, range.end))?.[1]?.length ?? 2);
    const shifted = indented(
      body.map((line) => line.slice(strip)),
      column,
    ).join(eolOf(text));
    const header = isContainer ? '' : `${head.slice('k: '.length)}${eolOf(text)}`;
    return spliced(text, { start: from, end: range.end }, header + shifted + ending);
  }
  if (!isContainer) return spliced(text, range, inline(value) + ending);
  if (pair === null) throw new Error('the value cannot be replaced in another form');
  const colon = behindColon(text, pair);
  const without = spliced(text, { start: from, end: range.end }, '');
  return spliced(without, { start: colon, end: colon }, ` ${inline(value)}`);
}

export const yaml: Syntax<YamlTree> = {
  name: 'YAML',

  parse(text) {
    const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false });
    const [error] = document.errors;
    if (error !== undefined) {
      const message =
        error.code === 'MULTIPLE_DOCS' ? 'it has several documents' : error.code.toLowerCase().replaceAll('_', ' ');
      throw new Error(`${message}, on line ${lineNumber(text, error.pos[0])}`);
    }
    return { text, value: new Reader(text).value(document.contents), document };
  },

  find(tree, pointer) {
    const { node, pair } = nodeAt(tree, pointer);
    if (node === null && pair === null) return null;
    const colon = pair === null ? 0 : behindColon(tree.text, pair);
    const value = node === null ? { start: colon, end: colon } : { start: startOf(node), end: endOf(node) };
    return {
      value,
      entry: { start: pair === null ? value.start : startOf(pair.key), end: Math.max(colon, value.end) },
    };
  },

  replace(tree, pointer, value) {
    const { text } = tree;
    const found = nodeAt(tree, pointer);
    const { node, pair } = found;
    const tag = isScalar(node) || isMap(node) || isSeq(node) ? node.tag : undefined;
    if (tag !== undefined) throw new Error('the value has a tag (!), which decides how programs read it');
    if (isBlock(node)) return replaceBlock(text, found, value);
    if (node === null || startOf(node) === endOf(node)) {
      if (pair === null) throw new Error('an empty element of a list cannot be replaced');
      const at = behindColon(text, pair);
      return spliced(text, { start: at, end: at }, ` ${inline(value)}`);
    }
    return spliced(text, { start: startOf(node), end: endOf(node) }, replacement(value, node));
  },

  insert(tree, pointer, depth, value) {
    const { text } = tree;
    const key = pointer[depth] as string;
    const inner = nested(pointer.slice(depth + 1), value);
    const found = nodeAt(tree, pointer.slice(0, depth));
    const { node, pair } = found;
    const lines = splitText(text);
    const added = (after: string) => ({ text: after, addedBlank: false });
    if (isAlias(node))
      throw new Error('the mapping is an alias (*), which is shared; declare the value where its anchor (&) is');
    if (isMap(node) && node.flow === true) {
      const entries = (node.items as Pair<Node, Node | null>[]).map(entryOf);
      const render = (): string => inline(new Map([[key, inner]])).slice(1, -1);
      const style = { comment: '#', padding: '', multiline: false, unit: '  ' } as const;
      return added(insertInBraces(text, { open: startOf(node) + 1, close: endOf(node) - 1, entries }, render, style));
    }
    if (isMap(node)) {
      const items = node.items as Pair<Node, Node | null>[];
      const column = columnOf(text, startOf((items[0] as Pair<Node, Node | null>).key));
      const { end } = linesOfPair(text, items.at(-1) as Pair<Node, Node | null>);
      return added(joinText(insertLines(lines, end, indented(block(text, key, inner), column))));
    }
    if (pair !== null && (node === null || startOf(node) === endOf(node))) {
      const indent = /\n( {1,8})[^\s#-]/.exec(text)?.[1]?.length ?? 2;
      const column = columnOf(text, startOf(pair.key)) + indent;
      const { end } = linesOfPair(text, pair);
      return added(joinText(insertLines(lines, end, indented(block(text, key, inner), column))));
    }
    if (node !== null && depth > 0) return added(yaml.replace(tree, pointer.slice(0, depth), new Map([[key, inner]])));
    return added(joinText(insertLines(lines, lines.length, block(text, key, inner))));
  },

  remove(tree, pointer) {
    const { text } = tree;
    const { pair, owner } = nodeAt(tree, pointer);
    if (pair === null || owner === null) throw new Error('an element of a list cannot be removed');
    const items = owner.items as Pair<Node, Node | null>[];
    const index = items.indexOf(pair);
    if (owner.flow === true)
      return removeFromBraces(
        text,
        { open: startOf(owner as Node) + 1, close: endOf(owner as Node) - 1, entries: items.map(entryOf) },
        index,
        '#',
      );
    if (items.length === 1 && pointer.length > 1) return yaml.replace(tree, pointer.slice(0, -1), new Map());
    const next = items[index + 1];
    if (!startsLine(text, startOf(pair.key))) {
      if (next === undefined) throw new Error('the key shares its line with another value');
      return spliced(text, { start: startOf(pair.key), end: startOf(next.key) }, '');
    }
    const { first, end } = linesOfPair(text, pair);
    const removed = new Set(Array.from({ length: end - first }, (_, at) => first + at));
    return joinText(removeLines(splitText(text), removed));
  },
};
