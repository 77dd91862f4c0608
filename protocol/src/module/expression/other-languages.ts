import { quoted } from '../nearest.ts';
import type { CelError } from './environment.ts';

/** Syntax that authors may know from Jinja, Python, or JavaScript, with its CEL equivalent. */

/** Returns the error for text that CEL does not expect, with the correct syntax. */
export function unexpected({ node, range }: CelError): string {
  const input = node?.input ?? '';
  const start = range?.start ?? 0;
  const rest = input.slice(start).trim();
  return rest === ''
    ? 'the expression is not valid CEL: it ends too early'
    : `the expression is not valid CEL at ${quoted(rest.slice(0, 40))}: ${adviceFor(input.slice(0, start), rest)}`;
}

/** Patterns for the text before the error, with the correct syntax. */
const ahead: readonly (readonly [RegExp, string])[] = [
  [/\bnot\s*$/, 'write !x for not x'],
  [/\battribute\s*$/, 'write x.map(e, e.name) for the names of the elements'],
  [/\?\s*$/, 'write | default("…") for a missing value'],
];

/** Operators of other languages, with their CEL equivalents. */
const spellings: readonly (readonly [RegExp, string])[] = [
  [/^=/, 'write == to compare'],
  [/^~/, 'write + to join texts'],
  [/^and\b/, 'write && for and'],
  [/^or\b/, 'write || for or'],
  [/^is\b/, 'write == for is, and has(x.key) to check whether a key exists'],
  [/^not in\b/, 'write !(x in y) for x not in y'],
  [/^if\b/, 'write condition ? value : other'],
];

const adviceFor = (before: string, rest: string): string =>
  ahead.find(([pattern]) => pattern.test(before.slice(-100)))?.[1] ??
  spellings.find(([pattern]) => pattern.test(rest))?.[1] ??
  'write an operator, or remove it';

/** Functions of other languages, with their CEL equivalents. */
const otherFunctions: ReadonlyMap<string, string> = new Map([
  ['upper', 'x.upperAscii()'],
  ['lower', 'x.lowerAscii()'],
  ['toUpperCase', 'x.upperAscii()'],
  ['toLowerCase', 'x.lowerAscii()'],
  ['length', 'size(x)'],
  ['len', 'size(x)'],
  ['count', 'size(x)'],
  ['str', 'string(x)'],
  ['float', 'double(x)'],
  ['to_json', 'json(x)'],
  ['to_nice_json', 'json(x, 2)'],
  ['to_yaml', 'yaml(x)'],
  ['to_nice_yaml', 'yaml(x)'],
  ['b64encode', 'base64(x)'],
  ['quote', 'shellQuote(x)'],
  ['d', 'x | default("…")'],
  ['mandatory', 'x alone, because a missing value is an error'],
  ['first', 'x[0]'],
  ['last', 'x[size(x) - 1]'],
  ['min', 'sort(x)[0]'],
  ['max', 'sort(x)[size(x) - 1]'],
  ['combine', 'merge(x, y)'],
  ['union', 'unique(x + y)'],
  ['difference', 'without(x, y)'],
  ['intersect', 'x.filter(e, e in y)'],
  ['select', 'x.filter(e, condition)'],
  ['selectattr', 'x.filter(e, e.key == value)'],
  ['reject', 'x.filter(e, !condition)'],
  ['rejectattr', 'x.filter(e, e.key != value)'],
  ['dict2items', 'entries(x)'],
  ['items', 'entries(x)'],
  ['ternary', 'condition ? x : y'],
  ['regex_search', 'x.matches(pattern)'],
  ['regex_escape', 'regexEscape(x)'],
  ['hash', 'sha256(x)'],
  ['version_compare', 'version(x) >= "1.2"'],
]);

/** Returns what to write instead of a function of another language; undefined if the name is unknown. */
export const writtenHere = (name: string): string | undefined => {
  const other = otherFunctions.get(name);
  return other === undefined ? undefined : `: write ${other}`;
};
