import { secretName } from '../../secret-name.ts';
import { quoted, suggestion } from '../nearest.ts';
import { type Block, blocksOf } from './blocks.ts';
import { compile } from './compile.ts';
import { readControl } from './control.ts';
import type { CelExpression, ControlPart, Expression, ExpressionFault, ExpressionRoot, Part } from './parts.ts';
import { readAt, scanExpression } from './scan.ts';

const open = '${{';
const close = '}}';
/** Maximum number of reported errors per text. */
export const maximumFaults = 10;
/** Maximum number of expressions per text that require CEL. Limits the compilation time. */
const maximumCel = 1000;

const keyPatterns: Record<Exclude<ExpressionRoot, 'each'>, { pattern: RegExp; form: string }> = {
  secrets: { pattern: secretName, form: 'secrets.<name>' },
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
export function parseExpressions(text: string): ParsedText {
  if (!text.includes(open)) return { parts: text === '' ? [] : [{ kind: 'text', text }], blocks: null, faults: [] };
  const known = parsedTexts.get(text);
  if (known !== undefined) return known;
  const parsed = arranged(parseText(text));
  rememberedCharacters += text.length;
  if (rememberedCharacters > maximumRemembered) {
    parsedTexts.clear();
    rememberedCharacters = text.length;
  }
  parsedTexts.set(text, parsed);
  return parsed;
}

interface ParsedText {
  readonly parts: readonly Part[];
  /** The parts as a tree; null if there are no control words. */
  readonly blocks: readonly Block[] | null;
  readonly faults: readonly ExpressionFault[];
}

// Cached, because all agents share the expressions of a revision. The limit is in characters.
const parsedTexts = new Map<string, ParsedText>();
const maximumRemembered = 16 * 1024 * 1024;
let rememberedCharacters = 0;

function arranged({ parts, faults }: Omit<ParsedText, 'blocks'>): ParsedText {
  if (faults.length > 0 || !parts.some(({ kind }) => kind === 'control')) return { parts, faults, blocks: null };
  const { blocks, faults: found } = blocksOf(parts);
  return { parts, faults: found.slice(0, maximumFaults), blocks };
}

function parseText(text: string): Omit<ParsedText, 'blocks'> {
  const parts: Part[] = [];
  const faults: ExpressionFault[] = [];
  let literal = '';
  let position = 0;
  let cel = 0;
  while (true) {
    const start = text.indexOf(open, position);
    if (start === -1) break;
    if (start > position && text[start - 1] === '$') {
      literal += text.slice(position, start - 1) + open;
      position = start + open.length;
      continue;
    }
    literal += text.slice(position, start);
    let read = readPart(text, start);
    if ('expression' in read && read.expression.kind !== 'expression' && ++cel > maximumCel)
      read = { message: `a text has at most ${maximumCel} expressions with operators or functions: split it` };
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

/** Escapes text so that parsing it as text from a module returns the original text without expressions. */
export const escapeExpressions = (text: string): string =>
  // Uses a function, because `$$` in a replacement string stands for one `$`.
  text.replaceAll(open, () => `$${open}`);

/** Returns the expression if the text consists only of one expression and white space; otherwise, undefined. */
export function soleExpression(parts: readonly Part[]): Expression | CelExpression | undefined {
  let sole: Expression | CelExpression | undefined;
  for (const part of parts) {
    if (part.kind === 'text') {
      if (part.text.trim() !== '') return undefined;
    } else if (part.kind === 'control') {
      return undefined;
    } else if (sole === undefined) {
      sole = part;
    } else {
      return undefined;
    }
  }
  return sole;
}

/**
 * Parses text that consists of one expression. The delimiters `${{` and `}}` are optional here.
 * @returns the expression, or a message for its author
 */
export function parsePlain(text: string): CelExpression | { readonly message: string } {
  const known = plainTexts.get(text);
  if (known !== undefined) return known;
  const inner = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(text)?.[1] ?? text;
  const scanned = scanExpression(inner, 0, false);
  if ('message' in scanned) return scanned;
  const compiled = compile(scanned.source);
  if ('message' in compiled) return compiled;
  const expression: CelExpression = { kind: 'cel', source: scanned.source, compiled, offset: 0 };
  if (plainTexts.size >= maximumPlain) plainTexts.clear();
  plainTexts.set(text, expression);
  return expression;
}

// Cached, because all agents share the conditions of a revision.
const plainTexts = new Map<string, CelExpression>();
const maximumPlain = 5000;

/** Formats the name in an expression for messages. */
export const written = (expression: Pick<Expression, 'root' | 'key'>): string =>
  expression.key === '' ? expression.root : `${expression.root}.${expression.key}`;

const blank = /\s*/y;
const reference = /[^\s|{}"'()]+/y;
const word = /[A-Za-z_]+/y;

const filters = ['default', 'join'] as const;
type Filter = (typeof filters)[number];
/**
 * Maximum length of a separator, in characters. Limited, because the separator is repeated for each element of a list.
 */
const maximumSeparator = 64;
const isFilter = (name: string): name is Filter => (filters as readonly string[]).includes(name);

/**
 * @param prefer when to use this message instead of CEL's: `always`, or `unparsed` if CEL cannot even find the end of
 *   the expression
 */
type ReadFault = { message: string; prefer: 'always' | 'unparsed' | 'never' };
type Read = { expression: Expression; end: number } | ReadFault;
type ReadPart = { expression: Expression | CelExpression | ControlPart; end: number } | { message: string };

function readPart(text: string, start: number): ReadPart {
  const control = readControl(text, start + open.length);
  if (control !== undefined)
    return 'message' in control
      ? control
      : { expression: { kind: 'control', control: control.control, offset: start }, end: control.end };
  const simple = readExpression(text, start);
  return 'message' in simple ? readCel(text, start, simple) : simple;
}

/** Parses an expression as CEL after `readExpression` has found that it is more than a name with filters. */
function readCel(text: string, start: number, simple: ReadFault): ReadPart {
  const scanned = scanExpression(text, start + open.length);
  if ('message' in scanned) return simple.prefer === 'never' ? scanned : simple;
  const { source, end } = scanned;
  // Does not compile a bare name, because authors rarely use such a map as a whole.
  if (Object.hasOwn(keyPatterns, source)) return simple;
  const compiled = compile(source);
  if ('message' in compiled) return simple.prefer === 'always' ? simple : compiled;
  return { expression: { kind: 'cel', source, compiled, offset: start }, end };
}

function readExpression(text: string, start: number): Read {
  let position = start + open.length;
  const skipBlanks = () => {
    position += readAt(blank, text, position).length;
  };
  skipBlanks();
  const name = readAt(reference, text, position);
  position += name.length;
  const named = readReference(name);
  if ('message' in named) {
    skipBlanks();
    return /[(['"]/.test(text[position] ?? '') ? { ...named, prefer: 'never' } : named;
  }
  skipBlanks();
  const given: Partial<Record<Filter, string>> = {};
  while (text[position] === '|') {
    position += 1;
    skipBlanks();
    const filter = readAt(word, text, position);
    if (!isFilter(filter)) {
      return { message: `unknown function ${quoted(filter)}`, prefer: 'never' };
    }
    if (given[filter] !== undefined) return { message: `${filter} is used twice`, prefer: 'unparsed' };
    position += filter.length;
    skipBlanks();
    if (text[position] !== '(') return { message: `${filter} requires a text: | ${filter}("…")`, prefer: 'unparsed' };
    position += 1;
    skipBlanks();
    const string = readString(text, position);
    if (string === undefined)
      return { message: `${filter} requires a text in quotes: | ${filter}("…")`, prefer: 'unparsed' };
    position = string.end;
    skipBlanks();
    if (text[position] !== ')') return { message: `${filter}("…") is not closed with ")"`, prefer: 'unparsed' };
    position += 1;
    if (filter === 'join' && string.value.length > maximumSeparator)
      return { message: `the separator of join has at most ${maximumSeparator} characters`, prefer: 'unparsed' };
    given[filter] = string.value;
    skipBlanks();
  }
  if (!text.startsWith(close, position)) {
    return text.includes(close, position)
      ? { message: 'the expression is not a name with filters', prefer: 'never' }
      : { message: notClosed, prefer: 'unparsed' };
  }
  const filters = { fallback: given.default ?? null, separator: given.join ?? null };
  return { expression: { kind: 'expression', ...named, ...filters, offset: start }, end: position + close.length };
}

const notClosed = 'the expression is not closed with "}}"; write $${{ for a plain ${{';

/** @returns root and key, or a message about the error in the name */
function readReference(name: string): { root: ExpressionRoot; key: string } | ReadFault {
  const dot = name.indexOf('.');
  const root = dot === -1 ? name : name.slice(0, dot);
  const key = dot === -1 ? '' : name.slice(dot + 1);
  if (root === '') return { message: 'the expression is empty; write $${{ for a plain ${{', prefer: 'never' };
  if (!roots.includes(root)) {
    const message = `unknown name ${quoted(root)}${suggestion(root, roots)}; write $\${{ for a plain \${{`;
    return { message, prefer: 'never' };
  }
  if (root === 'each') {
    return name === 'each' || /^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$/.test(key)
      ? { root, key }
      : { message: 'write each, or each.<key> if the elements are mappings', prefer: preferenceFor(key) };
  }
  const { pattern, form } = keyPatterns[root as keyof typeof keyPatterns];
  return pattern.test(key)
    ? { root: root as ExpressionRoot, key }
    : { message: `${quoted(name)} is not of the form ${form}`, prefer: preferenceFor(key) };
}

/** Prefers the message about a key unless the key contains operators or brackets, which CEL parses. */
const preferenceFor = (key: string): 'always' | 'never' => (/^[A-Za-z0-9._/:-]*$/.test(key) ? 'always' : 'never');

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
