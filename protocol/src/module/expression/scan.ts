import { quoted } from '../nearest.ts';

/** Maximum length of a CEL expression in characters. */
const maximumSource = 8192;

/**
 * @param source the expression with its pipes written as calls
 * @param end offset after the closing `}}`
 */
export type Scanned = { readonly source: string; readonly end: number } | { readonly message: string };

interface Frame {
  /** Closing bracket; empty for the expression itself. */
  readonly close: string;
  /** Offset in the output of the operand to which a pipe applies. */
  operand: number;
  /** Offset of this operand in the text. */
  start: number;
  /** Number of `?` without a matching `:` so far. */
  ternaries: number;
  /** Whether the operand ends with the call of a pipe, which only another pipe or the end of the operand may follow. */
  piped: boolean;
}

const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y;
const operator = /\|\||&&/y;
const blanks = /\s*/y;

/** Returns the text that a sticky pattern matches at a position; empty if it matches none. */
export const readAt = (pattern: RegExp, text: string, position: number): string => {
  pattern.lastIndex = position;
  return pattern.exec(text)?.[0] ?? '';
};

/** Returns the error for an expression that continues after a pipe without parentheses around it. */
function pipeNotLast(operand: string, rest: string): string {
  const written = operand.trim();
  // A pipe takes the whole operand, so a suggestion with several values would mean something else.
  if (written.length > 80 || /\|\||&&|\?|[=!<>+*/%]=?\s/.test(written))
    return 'a pipe ends the expression: put parentheses around the value with the pipe, such as (a | default("x")), or write default(a, "x")';
  const next = /^(\W{1,2}|\w+)(?=[\w\s("'[]|$)/.exec(rest)?.[0] ?? rest.slice(0, 1);
  return `a pipe ends the expression: write (${written}) before ${quoted(next.trim())}`;
}

const closed = (end: string): Scanned => ({ message: `the expression has a bracket that is not closed with "${end}"` });

/**
 * Finds the end of an expression, and writes `x | f(a)` as `f(x, a)`. A pipe takes everything to its left, up to the
 * enclosing bracket, comma, or colon of a map. Recognizes only strings, brackets, and pipes; CEL parses the result.
 *
 * @param start offset after the opening `${{`
 * @param terminated whether the expression ends with `}}`; otherwise it is the rest of the text
 */
export function scanExpression(text: string, start: number, terminated = true): Scanned {
  const frames: Frame[] = [{ close: '', operand: 0, start, ternaries: 0, piped: false }];
  let output = '';
  let position = start;
  while (position < text.length) {
    if (position - start > maximumSource) return { message: `an expression has at most ${maximumSource} characters` };
    const frame = frames.at(-1) as Frame;
    const character = text[position] as string;
    if (frames.length === 1 && terminated && text.startsWith('}}', position))
      return { source: output.trim(), end: position + 2 };
    const blank = readAt(blanks, text, position);
    if (blank !== '') {
      output += blank;
      position += blank.length;
      continue;
    }
    if (character === '|' && text[position + 1] !== '|') {
      const call = readPipe(text, position + 1);
      if (typeof call === 'string') return { message: call };
      const operand = output.slice(frame.operand).trim();
      if (operand === '') return { message: 'a pipe has no value on its left' };
      output = `${output.slice(0, frame.operand)}${call.name}(${operand}${call.hasArguments ? ', ' : ''}`;
      frame.piped = true;
      position = call.end;
      if (call.open) frames.push({ close: ')', operand: output.length, start: position, ternaries: 0, piped: false });
      else output += ')';
      continue;
    }
    if (character === frame.close) {
      frames.pop();
      output += character;
      position += 1;
      continue;
    }
    if (character === ',' || (character === ':' && frame.close === '}' && frame.ternaries === 0)) {
      output += character;
      position += 1;
      frame.operand = output.length;
      frame.start = position;
      frame.piped = false;
      frame.ternaries = 0;
      continue;
    }
    if (frame.close !== '' && /[)\]}]/.test(character)) return closed(frame.close);
    if (frame.piped) return { message: pipeNotLast(text.slice(frame.start, position), text.slice(position)) };
    if (character === '?') frame.ternaries += 1;
    if (character === ':') frame.ternaries -= 1;
    const close = closers[character];
    if (close !== undefined) {
      output += character;
      position += 1;
      frames.push({ close, operand: output.length, start: position, ternaries: 0, piped: false });
      continue;
    }
    const taken = readAt(operator, text, position) || readToken(text, position);
    if (taken === undefined) return { message: 'a text in the expression is not closed with its quote' };
    output += taken;
    position += taken.length;
  }
  const open = frames.at(-1) as Frame;
  if (open.close !== '') return closed(open.close);
  if (terminated) return { message: 'the expression is not closed with "}}"; write $${{ for a plain ${{' };
  return position - start > maximumSource
    ? { message: `an expression has at most ${maximumSource} characters` }
    : { source: output.trim(), end: position };
}

/** @returns the function after a pipe, and the offset after its name or its opening parenthesis; or a message */
function readPipe(
  text: string,
  start: number,
): { name: string; end: number; open: boolean; hasArguments: boolean } | string {
  let position = start + readAt(blanks, text, start).length;
  const name = readAt(identifier, text, position);
  if (name === '') return 'after "|" write a function, such as | default("…")';
  position += name.length;
  const open = position + readAt(blanks, text, position).length;
  if (text[open] !== '(') return { name, end: position, open: false, hasArguments: false };
  const first = open + 1 + readAt(blanks, text, open + 1).length;
  return { name, end: first, open: true, hasArguments: text[first] !== ')' };
}

/** Returns the string, name, or character at a position; undefined if a string is not closed. */
function readToken(text: string, position: number): string | undefined {
  const word = readAt(identifier, text, position);
  const after = text[position + word.length];
  const isQuote = after === '"' || after === "'";
  if (!isQuote || !/^[bBrR]{0,2}$/.test(word)) return word === '' ? text[position] : word;
  const start = position + word.length;
  const quote = text.startsWith(after.repeat(3), start) ? after.repeat(3) : after;
  for (let at = start + quote.length; at < text.length; at += 1) {
    if (text.startsWith(quote, at)) return text.slice(position, at + quote.length);
    // A backslash always skips a character, because a raw string cannot end with its quote either.
    if (text[at] === '\\') at += 1;
  }
  return undefined;
}
