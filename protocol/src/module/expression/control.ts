import { quoted } from '../nearest.ts';
import { type Compiled, compile } from './compile.ts';
import { scanExpression } from './scan.ts';

/** A control word in a template: `${{ for x in EXPR }}`, `${{ if EXPR }}`, `${{ include "id" }}`, or `${{ end }}`. */
export type Control =
  | { readonly word: 'for'; readonly names: readonly string[]; readonly list: Compiled }
  | { readonly word: 'if' | 'elif'; readonly condition: Compiled }
  | { readonly word: 'else' | 'end' }
  /**
   * @param endsLine whether the text must end with a line break, because the control word ends a line that is removed
   */
  | { readonly word: 'include'; readonly id: string; readonly endsLine?: boolean };

export type ReadControl = { readonly control: Control; readonly end: number } | { readonly message: string };

const opening = /\s*(for|if|elif|else|end|include)(?![A-Za-z0-9_(.])/y;
const loop = /\s+([A-Za-z_]\w*)(?:\s*,\s*([A-Za-z_]\w*))?\s+in(?![A-Za-z0-9_])/y;
const quotedId = /\s*(?:"([^"\\]*)"|'([^'\\]*)')/y;
const closing = /\s*\}\}/y;

/** Names that a loop variable cannot have: other variables, and CEL reserved words. */
const reserved = new Set(
  'agent attr tag param each index secrets omit lookup has true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** Returns the error for the name of a loop variable; undefined if the name is valid. */
export function variableFault(name: string): string | undefined {
  if (!/^[A-Za-z_]\w{0,63}$/.test(name))
    return `${quoted(name)} is not a valid name for a variable: use letters, digits, and "_", and do not begin with a digit`;
  return reserved.has(name) ? `${quoted(name)} has another meaning in expressions: choose another name` : undefined;
}

const readAt = (pattern: RegExp, text: string, position: number): RegExpExecArray | null => {
  pattern.lastIndex = position;
  return pattern.exec(text);
};

/**
 * Reads a control word.
 * @param start offset after the opening `${{`
 * @returns undefined if this is an expression
 */
export function readControl(text: string, start: number): ReadControl | undefined {
  const opened = readAt(opening, text, start);
  if (opened === null) return undefined;
  const word = opened[1] as Control['word'];
  const position = start + opened[0].length;
  if (word === 'for') return readFor(text, position);
  if (word === 'if' || word === 'elif') {
    const read = readExpression(text, position, `write a condition: \${{ ${word} param.x }}`);
    return 'message' in read ? read : { control: { word, condition: read.compiled }, end: read.end };
  }
  if (word === 'include') return readInclude(text, position);
  const end = readAt(closing, text, position);
  if (end === null)
    return { message: `after "${word}" write "}}"${word === 'else' ? '; for another condition write elif' : ''}` };
  return { control: { word }, end: position + end[0].length };
}

function readFor(text: string, start: number): ReadControl {
  const form = 'write ${{ for x in param.list }}, or ${{ for key, value in param.map }}';
  const head = readAt(loop, text, start);
  if (head === null) return { message: form };
  const names = [head[1], head[2]].filter((name) => name !== undefined);
  const fault = names.map(variableFault).find((found) => found !== undefined);
  if (fault !== undefined) return { message: fault };
  if (new Set(names).size < names.length) return { message: 'the key and the value need different names' };
  const read = readExpression(text, start + head[0].length, form);
  return 'message' in read ? read : { control: { word: 'for', names, list: read.compiled }, end: read.end };
}

function readInclude(text: string, start: number): ReadControl {
  const id = readAt(quotedId, text, start);
  const end = id === null ? null : readAt(closing, text, start + id[0].length);
  if (id === null || end === null) return { message: 'write ${{ include "id" }} with the id of a template' };
  return { control: { word: 'include', id: id[1] ?? id[2] ?? '' }, end: start + id[0].length + end[0].length };
}

function readExpression(
  text: string,
  start: number,
  form: string,
): { compiled: Compiled; end: number } | { message: string } {
  const scanned = scanExpression(text, start);
  if ('message' in scanned) return scanned;
  if (scanned.source === '') return { message: form };
  const compiled = compile(scanned.source);
  return 'message' in compiled ? compiled : { compiled, end: scanned.end };
}
