import { parseSync, Visitor } from 'oxc-parser';
import { lineAt, lineStarts } from '../checks/lines.ts';

/** A text's purpose. docs/style.md has rules for each purpose. */
export type TextKind = 'comment' | 'message' | 'log' | 'test' | 'page';

/** A readable text and its position. */
export interface WrittenText {
  kind: TextKind;
  file: string;
  /** Line number, from 1. */
  line: number;
  text: string;
}

const logLevels = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);

const sql =
  /^\s*(?:select\b.*\bfrom\b|insert (?:or \w+ )?into|update \S+ set|delete from|(?:create|alter|drop) (?:unlogged |unique )?(?:table|index|trigger|view|database|role|schema|sequence)\b|pragma|with \w+ as \()/is;
const className = /^(?:-?[a-z]+(?:-[a-z0-9]|:\S)|\[|\w+-\[)\S*$/;

/** Reports whether a literal has at least three words and is neither SQL nor a list of CSS classes. */
function isSentence(text: string): boolean {
  const words = text.trim().split(/\s+/);
  if (words.length < 3 || !/[a-z]{2}/.test(text) || sql.test(text)) return false;
  return words.filter((word) => className.test(word)).length * 2 < words.length;
}

/**
 * Finds the readable texts in a source file: comments, test names, log messages, and other literals that look like a
 * sentence.
 * @param file path relative to the root; determines whether the file is a test, and whether it contains JSX
 */
export function textsOf(file: string, source: string): WrittenText[] {
  const parsed = parseSync(file, source);
  const starts = lineStarts(source);
  const texts: WrittenText[] = [];
  const add = (kind: TextKind, at: number, text: string) =>
    texts.push({ kind, file, line: lineAt(starts, at), text: text.replaceAll(/\s+/g, ' ').trim() });
  const isTest = /\.test\.tsx?$/.test(file);

  let previous: { end: number; text: WrittenText } | null = null;
  for (const { value, start, end, type } of parsed.comments) {
    if (/^[\s*]*(?:biome-ignore|@ts-|\/ <reference)/.test(value)) continue;
    const text = value.replaceAll(/^\s*\*+ ?/gm, '');
    // Consecutive `//` lines are one comment.
    if (type === 'Line' && previous !== null && /^\n[ \t]*$/.test(source.slice(previous.end, start))) {
      previous.text.text = `${previous.text.text} ${text.trim()}`;
      previous.end = end;
      continue;
    }
    add('comment', start, text);
    previous = type === 'Line' ? { end, text: texts.at(-1)! } : null;
  }

  const taken = new Set<number>();
  const textOf = (node: unknown): { start: number; text: string } | null => {
    const literal = node as { type: string; start: number; value?: unknown; quasis?: { value: { cooked: string } }[] };
    if (literal?.type === 'Literal' && typeof literal.value === 'string')
      return { start: literal.start, text: literal.value };
    if (literal?.type === 'TemplateLiteral')
      return { start: literal.start, text: literal.quasis!.map(({ value }) => value.cooked).join('…') };
    return null;
  };
  const take = (kind: TextKind, node: unknown) => {
    const found = textOf(node);
    if (found === null) return;
    taken.add(found.start);
    add(kind, found.start, found.text);
  };
  const sentence = (node: unknown) => {
    const found = textOf(node);
    if (found === null || taken.has(found.start) || isTest) return;
    if (isSentence(found.text)) add('message', found.start, found.text);
  };
  new Visitor({
    CallExpression: ({ callee, arguments: given }) => {
      const base = callee.type === 'CallExpression' ? callee.callee : callee;
      const root = base.type === 'MemberExpression' ? base.object : base;
      if (isTest && root.type === 'Identifier' && (root.name === 'test' || root.name === 'it')) take('test', given[0]);
      if (
        !isTest &&
        callee.type === 'MemberExpression' &&
        callee.property.type === 'Identifier' &&
        logLevels.has(callee.property.name) &&
        /(?:^|[.#])log$/.test(source.slice(callee.object.start, callee.object.end))
      )
        for (const argument of given) take('log', argument);
    },
  }).visit(parsed.program);
  new Visitor({
    Literal: sentence,
    TemplateLiteral: sentence,
    JSXText: (node) => {
      if (isSentence(node.value)) add('message', node.start, node.value);
    },
  }).visit(parsed.program);
  return texts;
}
