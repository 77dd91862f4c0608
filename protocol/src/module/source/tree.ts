import { isAlias, isMap, isPair, isScalar, isSeq, type Node } from 'yaml';
import type { Fault } from '../../errors.ts';
import { quoted } from '../nearest.ts';
import { pointer } from './json-pointer.ts';
import { moduleLimits, type Positions } from './source.ts';
import { Abandoned, abandon, composeDocument, type Report, tooDeep, tooMany } from './yaml.ts';

/** Keys and indices from the root. */
export type Path = readonly (string | number)[];

interface Extent {
  /** Offsets in the text. */
  readonly start: number;
  readonly end: number;
  /** Number of mappings, lists, and values, including this node, with expanded aliases. */
  readonly size: number;
  /** Nesting depth of mappings and lists, with expanded aliases; 0 for a scalar. */
  readonly height: number;
  /** Number of characters of all text in the node, with expanded aliases. */
  readonly characters: number;
}

/** A node of the module. An alias is represented by the same object as its anchor. */
export type TreeNode =
  | (Extent & { readonly kind: 'scalar'; readonly value: string | number | boolean | null })
  | (Extent & { readonly kind: 'list'; readonly items: readonly TreeNode[] })
  | (Extent & { readonly kind: 'map'; readonly entries: ReadonlyMap<string, Entry> });

interface Entry {
  readonly keyStart: number;
  readonly value: TreeNode;
}

/**
 * Parses a YAML 1.2 document (core schema) within the limits. Counts tokens while they are produced, checks the nesting
 * before any recursion, and does not copy aliases.
 *
 * @param text result of `decodeSource`
 * @returns the tree, or undefined if the document cannot be parsed; the errors in the text; and the paths (JSON
 *   pointers) of faulty parts that were replaced with null
 */
export function readTree(
  text: string,
  positions: Positions,
): { root: TreeNode | undefined; faults: Fault[]; replaced: ReadonlySet<string> } {
  const faults: Fault[] = [];
  const replaced = new Set<string>();
  const report = (message: string, offset: number, path = ''): void => {
    faults.push({ path, message, ...positions.at(Math.min(offset, text.length)) });
  };
  try {
    const document = composeDocument(text, report);
    const root = new TreeBuilder(report, replaced).build(document.contents as Node | null);
    return { root, faults, replaced };
  } catch (error) {
    if (!(error instanceof Abandoned)) throw error;
    return { root: undefined, faults, replaced };
  }
}

// In characters. YAML itself limits a key on one line to this length. Keys are repeated in the paths of all errors
// below them.
const maximumKey = 1024;

const coreTags = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((tag) => `tag:yaml.org,2002:${tag}`),
);

class TreeBuilder {
  readonly #report: Report;
  readonly #replaced: Set<string>;
  readonly #anchors = new Map<string, TreeNode | 'open'>();

  constructor(report: Report, replaced: Set<string>) {
    this.#report = report;
    this.#replaced = replaced;
  }

  #replace(message: string, start: number, end: number, path: string): TreeNode {
    this.#report(message, start, path);
    this.#replaced.add(path);
    return scalar(null, start, end);
  }

  build(contents: Node | null): TreeNode {
    const root = this.#node(contents, 0, 1, '');
    if (root.height > moduleLimits.depth) abandon(this.#report, tooDeep, root.start);
    if (root.size > moduleLimits.nodes)
      abandon(this.#report, `${tooMany} (an alias counts each time it is used)`, root.start);
    if (root.characters > moduleLimits.expandedCharacters) {
      abandon(this.#report, 'too much text with expanded aliases: use fewer aliases', root.start);
    }
    return root;
  }

  /** @param depth nesting depth of this node if it is a collection, from 1 */
  #node(node: Node | null | undefined, fallback: number, depth: number, path: string): TreeNode {
    const start = node?.range?.[0] ?? fallback;
    const end = node?.range?.[1] ?? start;
    if (node === null || node === undefined) return scalar(null, start, end);
    if (isAlias(node)) return this.#alias(node.source, start, end, path);
    const { anchor, tag } = node as { anchor?: string; tag?: string };
    if (tag !== undefined && !coreTags.has(tag)) {
      return this.#replace(`the tag ${quoted(tag)} is not allowed: remove it`, start, end, path);
    }
    if (anchor !== undefined) this.#anchors.set(anchor, 'open');
    const built = this.#content(node, start, end, depth, path);
    if (anchor !== undefined) this.#anchors.set(anchor, built);
    return built;
  }

  #alias(name: string, start: number, end: number, path: string): TreeNode {
    const target = this.#anchors.get(name);
    if (target === undefined) return this.#replace(`there is no anchor &${name} before this alias`, start, end, path);
    if (target === 'open') return this.#replace(`the alias *${name} is inside its own anchor`, start, end, path);
    return target;
  }

  #content(node: Node, start: number, end: number, depth: number, path: string): TreeNode {
    if (isScalar(node)) return this.#scalar(node.value, start, end, path);
    if (depth > moduleLimits.depth) return abandon(this.#report, tooDeep, start);
    if (isSeq(node)) {
      const items = node.items.map((item, index) => this.#node(item as Node, start, depth + 1, `${path}/${index}`));
      return { kind: 'list', items, start, end, ...measure(items, 0) };
    }
    if (isMap(node) && node.flow && node.items.some(({ key }) => isMap(key) && key.flow)) {
      this.#replace('"{{" begins a mapping in YAML: to insert a value, write "${{ … }}" in quotes', start, end, path);
      // Text, because checks report null as absent.
      return scalar('…', start, end);
    }
    if (isMap(node)) return this.#map(node.items, start, end, depth, path);
    return scalar(null, start, end);
  }

  #map(items: readonly unknown[], start: number, end: number, depth: number, path: string): TreeNode {
    const entries = new Map<string, Entry>();
    const values: TreeNode[] = [];
    let keyCharacters = 0;
    for (const item of items) {
      if (!isPair(item)) continue;
      const keyNode = item.key as Node | null;
      const keyStart = keyNode?.range?.[0] ?? start;
      const key = this.#key(keyNode, keyStart, path);
      const keyPath = key === undefined ? path : path + pointer([key]);
      const value = this.#node(item.value as Node | null, keyNode?.range?.[1] ?? keyStart, depth + 1, keyPath);
      values.push(value);
      if (key === undefined) continue;
      keyCharacters += key.length;
      if (entries.has(key)) this.#report(`the key ${quoted(key)} is set twice: keep one`, keyStart, keyPath);
      else entries.set(key, { keyStart, value });
    }
    return { kind: 'map', entries, start, end, ...measure(values, keyCharacters) };
  }

  /** Returns the text of a key. Reports an error for a key that is not allowed, such as one with an anchor or a tag. */
  #key(node: Node | null, start: number, path: string): string | undefined {
    if (isScalar(node) && typeof node.value === 'string' && node.tag === undefined) {
      const { value } = node;
      if (value === '<<' && node.type === 'PLAIN') {
        this.#report('merge keys (<<) are not part of YAML 1.2: repeat the fields', start, path);
        return undefined;
      }
      if (value === '__proto__') {
        this.#report('"__proto__" cannot be a key', start, path);
        return undefined;
      }
      if (value.length > maximumKey) {
        this.#report(`a key has at most ${maximumKey} characters`, start, path);
        return undefined;
      }
      if (node.anchor !== undefined) this.#report('a key cannot have an anchor', start, path);
      return value;
    }
    this.#report('a key must be text: write it in quotes', start, path);
    return undefined;
  }

  #scalar(value: unknown, start: number, end: number, path: string): TreeNode {
    if (typeof value === 'number' && !Number.isFinite(value)) {
      return this.#replace('a number must be finite', start, end, path);
    }
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      return scalar(value, start, end);
    }
    return this.#replace('the value is not supported: write text, a number, true, or false', start, end, path);
  }
}

const scalar = (value: string | number | boolean | null, start: number, end: number): TreeNode => ({
  kind: 'scalar',
  value,
  start,
  end,
  size: 1,
  height: 0,
  characters: typeof value === 'string' ? value.length : 0,
});

function measure(children: readonly TreeNode[], keyCharacters: number): Pick<Extent, 'size' | 'height' | 'characters'> {
  let size = 1;
  let height = 0;
  let characters = keyCharacters;
  for (const child of children) {
    size += child.size;
    height = Math.max(height, child.height);
    characters += child.characters;
  }
  // Nested aliases can double these numbers at each level, but the limits are far below the point where numbers lose
  // precision.
  return { size, height: height + 1, characters };
}

/** Converts a tree within its limits to a value. An alias becomes the same object as its anchor. */
export function treeValue(node: TreeNode, seen = new Map<TreeNode, unknown>()): unknown {
  if (node.kind === 'scalar') return node.value;
  const known = seen.get(node);
  if (known !== undefined) return known;
  const value =
    node.kind === 'list'
      ? node.items.map((item) => treeValue(item, seen))
      : Object.fromEntries([...node.entries].map(([key, entry]) => [key, treeValue(entry.value, seen)]));
  seen.set(node, value);
  return value;
}

/** Returns the node at a path; undefined if it does not exist. */
export function nodeAt(root: TreeNode, path: Path): TreeNode | undefined {
  let node: TreeNode | undefined = root;
  for (const segment of path) {
    if (node?.kind === 'list' && typeof segment === 'number') node = node.items[segment];
    else if (node?.kind === 'map') node = node.entries.get(String(segment))?.value;
    else return undefined;
  }
  return node;
}

/**
 * Returns the offset of the value or the key at a path; if the path does not exist, of its closest existing parent.
 * @returns an offset in the text, in UTF-16 code units
 */
export function offsetOf(root: TreeNode, path: Path, at: 'key' | 'value'): number {
  let node = root;
  let offset = root.start;
  for (const [index, segment] of path.entries()) {
    if (node.kind === 'list') {
      const item = node.items[Number(segment)];
      if (item === undefined) return offset;
      node = item;
      offset = item.start;
    } else if (node.kind === 'map') {
      const entry = node.entries.get(String(segment));
      if (entry === undefined) return offset;
      if (at === 'key' && index === path.length - 1) return entry.keyStart;
      node = entry.value;
      offset = entry.value.start;
    } else {
      return offset;
    }
  }
  return offset;
}
