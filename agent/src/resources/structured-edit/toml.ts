import { type AST, parseTOML } from 'toml-eslint-parser';
import { insertLines, joinText, removeLines, splitText, type TextLine } from '../text-edit/lines.ts';
import { insertInBraces, removeFromBraces } from './braces.ts';
import { eolOf, indentationAt, lineNumber, type Range, type Syntax, spliced, type Tree } from './syntax.ts';
import { nested, type Pointer, type Value } from './value.ts';

/** A `key = value` pair in the file, with all keys that lead to it. */
interface Setting {
  readonly path: Pointer;
  readonly node: AST.TOMLKeyValue;
  /** Null if the setting is above the first table. */
  readonly table: AST.TOMLTable | null;
}

interface TomlTree extends Tree {
  readonly settings: readonly Setting[];
  readonly tables: readonly AST.TOMLTable[];
}

const rangeOf = ({ range: [start, end] }: { range: [number, number] }): Range => ({ start, end });
const keysOf = ({ key }: AST.TOMLKeyValue): string[] =>
  key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value));
const pathOf = (table: AST.TOMLTable): string[] => table.resolvedKey.map(String);
const startsWith = (pointer: Pointer, prefix: Pointer): boolean =>
  prefix.length <= pointer.length && prefix.every((key, at) => pointer[at] === key);

function valueOfNode(node: AST.TOMLContentNode, text: string): Value {
  if (node.type === 'TOMLArray') return node.elements.map((element) => valueOfNode(element, text));
  if (node.type === 'TOMLInlineTable') {
    const table = new Map<string, Value>();
    for (const item of node.body) put(table, keysOf(item), valueOfNode(item.value, text));
    return table;
  }
  // Dates are equal if their text is equal.
  return node.kind === 'string' || node.kind === 'integer' || node.kind === 'float' || node.kind === 'boolean'
    ? node.value
    : text.slice(...node.range);
}

/** Puts a value into tables. A number in a table's path is an index into an array of tables. */
function put(root: Map<string, Value>, path: readonly (string | number)[], value: Value | null): void {
  let owner: Value = root;
  for (const [at, key] of path.entries()) {
    const next: Value =
      at === path.length - 1 && value !== null ? value : typeof path[at + 1] === 'number' ? [] : new Map();
    if (owner instanceof Map) {
      if (!owner.has(String(key))) owner.set(String(key), next);
      owner = owner.get(String(key)) as Value;
    } else if (Array.isArray(owner)) {
      owner[Number(key)] ??= next;
      owner = owner[Number(key)] as Value;
    }
  }
}

/** Returns the innermost node that a pointer leads to, with its entry and the inline table of the entry. */
function nodeAt(
  { settings }: TomlTree,
  pointer: Pointer,
): { node: AST.TOMLContentNode; entry: AST.TOMLNode; owner: AST.TOMLInlineTable | AST.TOMLArray | null } | null {
  const setting = settings.find(({ path }) => startsWith(pointer, path));
  if (setting === undefined) return null;
  let node = setting.node.value;
  let entry: AST.TOMLNode = setting.node;
  let owner: AST.TOMLInlineTable | AST.TOMLArray | null = null;
  let rest = pointer.slice(setting.path.length);
  while (rest.length > 0) {
    if (node.type === 'TOMLArray') {
      owner = node;
      const element: AST.TOMLContentNode | undefined = node.elements[Number(rest[0])];
      if (element === undefined) return null;
      node = element;
      entry = element;
      rest = rest.slice(1);
    } else if (node.type === 'TOMLInlineTable') {
      owner = node;
      const keys = rest;
      const item: AST.TOMLKeyValue | undefined = node.body.find((each) => startsWith(keys, keysOf(each)));
      if (item === undefined) return null;
      node = item.value;
      entry = item;
      rest = rest.slice(keysOf(item).length);
    } else return null;
  }
  return { node, entry, owner };
}

const quoted = (text: string): string => JSON.stringify(text).replaceAll('\x7f', '\\u007f');
const keyText = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : quoted(key));
const dotted = (keys: Pointer): string => keys.map(keyText).join('.');
const date = /^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)?)?$|^\d\d:\d\d:\d\d(\.\d+)?$/;

/** @param old the text that the value replaces; the new text keeps its form */
function rendered(value: Value, text: string, indentation: string, old: AST.TOMLContentNode | null = null): string {
  const raw = old === null ? '' : text.slice(...old.range);
  if (value === null) throw new Error('TOML has no null');
  if (typeof value === 'string') {
    if (old?.type === 'TOMLValue' && old.kind.includes('-') && date.test(value)) return value;
    return /^'(?!'')/.test(raw) && /^[^'\x00-\x1f\x7f]*$/.test(value) ? `'${value}'` : quoted(value);
  }
  if (typeof value === 'number' && old?.type === 'TOMLValue' && old.kind === 'float' && Number.isInteger(value))
    return value.toFixed(1);
  if (Array.isArray(value)) {
    const items = value.map((item) => rendered(item, text, indentation));
    if (!raw.includes('\n') || items.length === 0) return `[${items.join(', ')}]`;
    const inner = /\n([ \t]+)\S/.exec(raw)?.[1] ?? `${indentation}  `;
    return `[\n${items.map((item) => `${inner}${item},\n`).join('')}${indentation}]`.replaceAll('\n', eolOf(text));
  }
  if (value instanceof Map) {
    const items = [...value].map(([key, item]) => `${keyText(key)} = ${rendered(item, text, indentation)}`);
    return items.length === 0 ? '{}' : `{ ${items.join(', ')} }`;
  }
  return String(value);
}

/** Returns the separator of a setting, with the surrounding whitespace. */
function separatorOf(text: string, node: AST.TOMLKeyValue | undefined): string {
  const found = node === undefined ? '' : text.slice(node.key.range[1], node.value.range[0]);
  return /^[ \t]*=[ \t]*$/.test(found) ? found : ' = ';
}

const linesOf = (text: string): TextLine[] => splitText(text);
const lineAt = (text: string, offset: number): number => lineNumber(text, offset) - 1;

/** Inserts a setting below the last one of its table. */
function insertSetting(
  tree: TomlTree,
  table: AST.TOMLTable | null,
  keys: Pointer,
  value: Value,
  behind?: AST.TOMLKeyValue,
): string {
  const { text, settings } = tree;
  const last = behind ?? settings.findLast((setting) => setting.table === table)?.node;
  const indentation = last !== undefined ? indentationAt(text, last.range[0]) : '';
  const line = `${indentation}${dotted(keys)}${separatorOf(text, last ?? settings.at(-1)?.node)}${rendered(value, text, indentation)}`;
  const lines = linesOf(text);
  const index =
    last !== undefined
      ? lineAt(text, last.range[1]) + 1
      : table !== null
        ? lineAt(text, table.key.range[1]) + 1
        : belowFirstComment(lines);
  return joinText(insertLines(lines, index, [line]));
}

/**
 * Returns the index of the line below the comment at the start of the file; 0 if no empty line separates the comment
 * from the rest.
 */
function belowFirstComment(lines: readonly TextLine[]): number {
  const end = lines.findIndex(({ text }) => !text.trim().startsWith('#'));
  if (end === -1) return lines.length;
  return lines[end]?.text.trim() === '' ? end : 0;
}

/** Returns the lines of everything at or below a pointer. */
function linesBelow({ text, tables, settings }: TomlTree, pointer: Pointer): Set<number> {
  const lines = new Set<number>();
  const add = (start: number, end: number): void => {
    for (let line = lineAt(text, start); line <= lineAt(text, end); line++) lines.add(line);
  };
  for (const table of tables)
    if (startsWith(pathOf(table), pointer))
      add(table.range[0], Math.max(table.key.range[1], table.body.at(-1)?.range[1] ?? 0));
  for (const { path, node } of settings) if (startsWith(path, pointer)) add(...node.range);
  return lines;
}

export const toml: Syntax<TomlTree> = {
  name: 'TOML',

  parse(text) {
    let program: AST.TOMLProgram;
    try {
      program = parseTOML(text);
    } catch (error) {
      const { message, lineNumber: line } = error as { message: string; lineNumber?: number };
      throw line === undefined ? error : new Error(`${message}, on line ${line}`);
    }
    const [top] = program.body;
    const tables = top.body.filter((item) => item.type === 'TOMLTable');
    const settings = [
      ...top.body
        .filter((item) => item.type === 'TOMLKeyValue')
        .map((node) => ({ path: keysOf(node), node, table: null })),
      ...tables.flatMap((table) =>
        table.body.map((node) => ({ path: [...pathOf(table), ...keysOf(node)], node, table })),
      ),
    ];
    const value = new Map<string, Value>();
    for (const item of top.body) {
      if (item.type === 'TOMLKeyValue') put(value, keysOf(item), valueOfNode(item.value, text));
      else {
        put(value, item.resolvedKey, null);
        for (const node of item.body) put(value, [...item.resolvedKey, ...keysOf(node)], valueOfNode(node.value, text));
      }
    }
    return { text, value, settings, tables };
  },

  find(tree, pointer) {
    const found = nodeAt(tree, pointer);
    return found === null ? null : { value: rangeOf(found.node), entry: rangeOf(found.entry) };
  },

  replace(tree, pointer, value) {
    const found = nodeAt(tree, pointer);
    if (found === null) throw new Error('the value is a table; declare its values one by one');
    const { text } = tree;
    const range = rangeOf(found.node);
    return spliced(text, range, rendered(value, text, indentationAt(text, range.start), found.node));
  },

  insert(tree, pointer, depth, value) {
    const { text, tables, settings } = tree;
    const owner = pointer.slice(0, depth);
    const inline = nodeAt(tree, owner)?.node;
    if (inline?.type === 'TOMLInlineTable') {
      const braces = {
        open: inline.range[0] + 1,
        close: inline.range[1] - 1,
        entries: inline.body.map(rangeOf),
      };
      const inner = nested(pointer.slice(depth + 1), value);
      const render = (indentation: string): string =>
        `${keyText(pointer[depth] as string)} = ${rendered(inner, text, indentation)}`;
      const style = { comment: '#', padding: ' ', multiline: false, unit: '  ' } as const;
      return { text: insertInBraces(text, braces, render, style), addedBlank: false };
    }
    const parents = pointer.slice(0, -1);
    const isExactly = (table: AST.TOMLTable, path: Pointer): boolean =>
      table.resolvedKey.length === path.length && startsWith(pathOf(table), path);
    const added = (after: string) => ({ text: after, addedBlank: false });
    const table = tables.find((each) => isExactly(each, parents));
    if (parents.length === 0) return added(insertSetting(tree, null, pointer, value));
    if (table !== undefined) return added(insertSetting(tree, table, pointer.slice(-1), value));
    // A table that dotted keys define cannot have a header.
    const beside = settings.findLast(
      ({ path, table: home }) => depth > (home?.resolvedKey.length ?? 0) && startsWith(path, owner),
    );
    if (beside !== undefined)
      return added(
        insertSetting(tree, beside.table, pointer.slice(beside.table?.resolvedKey.length ?? 0), value, beside.node),
      );
    // A header can refer only to the last element of an array of tables.
    const element = tables.find(
      (each) => isExactly(each, owner) && each.resolvedKey.some((key) => typeof key === 'number'),
    );
    if (element !== undefined) return added(insertSetting(tree, element, pointer.slice(depth), value));
    if (
      tables.some(
        ({ resolvedKey }) =>
          startsWith(owner, resolvedKey.map(String)) && resolvedKey.some((key) => typeof key === 'number'),
      )
    )
      throw new Error('the value belongs to a table within an array of tables that has no header');
    const lines = linesOf(text);
    const last = lines.at(-1);
    const addedBlank = last !== undefined && last.text.trim() !== '';
    const key = pointer.at(-1) as string;
    const setting = `${keyText(key)}${separatorOf(text, settings.at(-1)?.node)}${rendered(value, text, '')}`;
    const texts = [...(addedBlank ? [''] : []), `[${dotted(parents)}]`, setting];
    return { text: joinText(insertLines(lines, lines.length, texts)), addedBlank };
  },

  remove(tree, pointer, hasBlank) {
    const { text } = tree;
    const found = nodeAt(tree, pointer);
    if (found !== null && found.owner !== null) {
      const { entry, owner } = found;
      const entries: readonly AST.TOMLNode[] = owner.type === 'TOMLArray' ? owner.elements : owner.body;
      const braces = { open: owner.range[0] + 1, close: owner.range[1] - 1, entries: entries.map(rangeOf) };
      return removeFromBraces(text, braces, entries.indexOf(entry), '#');
    }
    const lines = linesOf(text);
    const removed = linesBelow(tree, pointer);
    if (removed.size === 0) throw new Error('the value is a part of an inline table with dotted keys');
    const above = Math.min(...removed) - 1;
    if (hasBlank && lines[above]?.text.trim() === '') removed.add(above);
    return joinText(removeLines(lines, removed));
  },
};
