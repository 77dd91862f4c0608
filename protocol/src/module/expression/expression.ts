import { quoted, suggestion } from '../nearest.ts';

/** The source of a value. `each` is the current element of `for_each`. */
type ExpressionRoot = 'secrets' | 'agent' | 'attr' | 'tag' | 'param' | 'each';

export interface Expression {
  readonly kind: 'expression';
  readonly root: ExpressionRoot;
  /** The text after the first dot; empty for `each` itself. */
  readonly key: string;
  /** Value of `| default("…")`, which replaces a missing value. */
  readonly fallback: string | null;
  /** Value of `| join("…")`, which separates list elements. */
  readonly separator: string | null;
  /** Offset of the opening `${{` in the text, in UTF-16 units. */
  readonly offset: number;
}

interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

export type Part = TextPart | Expression;

export interface ExpressionFault {
  readonly offset: number;
  readonly message: string;
}

const open = '${{';
const close = '}}';
/** Maximum number of reported errors per text. */
export const maximumFaults = 10;

const keyPatterns: Record<Exclude<ExpressionRoot, 'each'>, { pattern: RegExp; form: string }> = {
  secrets: { pattern: /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, form: 'secrets.<name>' },
  agent: { pattern: /^(name|node_id)$/, form: 'agent.name or agent.node_id' },
  attr: { pattern: /^[A-Za-z0-9_][A-Za-z0-9._/:-]*$/, form: 'attr.<key>' },
  tag: { pattern: /^[A-Za-z][A-Za-z0-9._/-]{0,62}$/, form: 'tag.<key>' },
  param: { pattern: /^[A-Za-z_][A-Za-z0-9_-]*$/, form: 'param.<name>' },
};
const roots = [...Object.keys(keyPatterns), 'each'];

/**
 * Splits text from a module into plain text and expressions, without evaluating them. `$${{` yields the plain text
 * `${{`. Takes linear time for any text.
 *
 * @returns the parts, and at most `maximumFaults` errors
 */
export function parseExpressions(text: string): { parts: Part[]; faults: ExpressionFault[] } {
  const parts: Part[] = [];
  const faults: ExpressionFault[] = [];
  let literal = '';
  let position = 0;
  while (true) {
    const start = text.indexOf(open, position);
    if (start === -1) break;
    if (start > position && text[start - 1] === '$') {
      literal += text.slice(position, start - 1) + open;
      position = start + open.length;
      continue;
    }
    literal += text.slice(position, start);
    const read = readExpression(text, start);
    if ('message' in read) {
      faults.push({ offset: start, message: read.message });
      const end = text.indexOf(close, start + open.length);
      if (end === -1 || faults.length === maximumFaults) return { parts, faults };
      position = end + close.length;
      continue;
    }
    if (literal !== '') parts.push({ kind: 'text', text: literal });
    literal = '';
    parts.push(read.expression);
    position = read.end;
  }
  literal += text.slice(position);
  if (literal !== '') parts.push({ kind: 'text', text: literal });
  return { parts, faults };
}

/** Escapes a text, so that parsing it as text from a module yields the same text without expressions. */
export const escapeExpressions = (text: string): string =>
  // A function, because `$$` in a replacement string stands for one `$`.
  text.replaceAll(open, () => `$${open}`);

/** Returns the expression if a text has only this expression and white space, otherwise undefined. */
export function soleExpression(parts: readonly Part[]): Expression | undefined {
  let sole: Expression | undefined;
  for (const part of parts) {
    if (part.kind === 'text') {
      if (part.text.trim() !== '') return undefined;
    } else if (sole === undefined) {
      sole = part;
    } else {
      return undefined;
    }
  }
  return sole;
}

/** Formats the name in an expression for messages. */
export const written = (expression: Expression): string =>
  expression.key === '' ? expression.root : `${expression.root}.${expression.key}`;

const blank = /\s*/y;
const reference = /[^\s|{}"'()]+/y;
const word = /[A-Za-z_]+/y;

const filters = ['default', 'join'] as const;
type Filter = (typeof filters)[number];
/** Maximum separator length in characters. Limited, because it is repeated for each element of a list. */
const maximumSeparator = 64;
const isFilter = (name: string): name is Filter => (filters as readonly string[]).includes(name);

type Read = { expression: Expression; end: number } | { message: string };

const readAt = (pattern: RegExp, text: string, position: number): string => {
  pattern.lastIndex = position;
  return pattern.exec(text)?.[0] ?? '';
};

function readExpression(text: string, start: number): Read {
  let position = start + open.length;
  const skipBlanks = () => {
    position += readAt(blank, text, position).length;
  };
  skipBlanks();
  const name = readAt(reference, text, position);
  position += name.length;
  const named = readReference(name);
  if (typeof named === 'string') return { message: named };
  skipBlanks();
  const given: Partial<Record<Filter, string>> = {};
  while (text[position] === '|') {
    position += 1;
    skipBlanks();
    const filter = readAt(word, text, position);
    if (!isFilter(filter)) {
      return { message: `unknown filter ${quoted(filter)}: the filters are | default("…") and | join("…")` };
    }
    if (given[filter] !== undefined) return { message: `${filter} is used twice` };
    position += filter.length;
    skipBlanks();
    if (text[position] !== '(') return { message: `${filter} requires a text: | ${filter}("…")` };
    position += 1;
    skipBlanks();
    const string = readString(text, position);
    if (string === undefined) return { message: `${filter} requires a text in quotes: | ${filter}("…")` };
    position = string.end;
    skipBlanks();
    if (text[position] !== ')') return { message: `${filter}("…") is not closed with ")"` };
    position += 1;
    if (filter === 'join' && string.value.length > maximumSeparator)
      return { message: `the separator of join has at most ${maximumSeparator} characters` };
    given[filter] = string.value;
    skipBlanks();
  }
  if (!text.startsWith(close, position)) {
    return text.includes(close, position)
      ? { message: 'an expression can have only one name, one | default("…"), and one | join("…")' }
      : { message: 'the expression is not closed with "}}"; write $${{ for a plain ${{' };
  }
  const filters = { fallback: given.default ?? null, separator: given.join ?? null };
  return { expression: { kind: 'expression', ...named, ...filters, offset: start }, end: position + close.length };
}

/** @returns root and key, or a message about the error in the name */
function readReference(name: string): { root: ExpressionRoot; key: string } | string {
  const dot = name.indexOf('.');
  const root = dot === -1 ? name : name.slice(0, dot);
  const key = dot === -1 ? '' : name.slice(dot + 1);
  if (root === '') return 'the expression is empty; write $${{ for a plain ${{';
  if (!roots.includes(root)) {
    return `unknown name ${quoted(root)}${suggestion(root, roots)}; write $\${{ for a plain \${{`;
  }
  if (root === 'each') {
    return name === 'each' || /^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$/.test(key)
      ? { root, key }
      : 'write each, or each.<key> if the elements are mappings';
  }
  const { pattern, form } = keyPatterns[root as keyof typeof keyPatterns];
  return pattern.test(key) ? { root: root as ExpressionRoot, key } : `${quoted(name)} is not of the form ${form}`;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

function readString(text: string, start: number): { value: string; end: number } | undefined {
  const quote = text[start];
  if (quote !== '"' && quote !== "'") return undefined;
  let value = '';
  let position = start + 1;
  while (position < text.length) {
    const character = text[position] as string;
    if (character === quote) return { value, end: position + 1 };
    if (character === '\\') {
      const escaped = text[position + 1];
      if (escaped === undefined) return undefined;
      value += escapes[escaped] ?? escaped;
      position += 2;
    } else {
      value += character;
      position += 1;
    }
  }
  return undefined;
}
