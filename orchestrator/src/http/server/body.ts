import { isUtf8 } from 'node:buffer';
import { type Fault, MusterError } from '@muster/protocol';
import { parse as parseSlowly } from 'jsonc-parser';
import { endOfString } from '../../json-strings.ts';
import { findFaults } from './json-faults.ts';

/** Maximum nesting depth of arrays and objects. The outermost level is 1. */
const maxDepth = 32;
/**
 * Maximum number of commas and colons outside strings. No route needs more than 10,000 keys. Parsing a MiB of short
 * keys takes 0.2 s.
 */
const maxSeparators = 40_000;

/**
 * Parses a JSON body strictly. Refuses duplicate keys (of which `JSON.parse` would keep the last), keys that could
 * modify a prototype, nesting beyond {@link maxDepth}, text that cannot be encoded in a response, and more than {@link
 * maxSeparators} separators. Reads an invalid body a second time to locate the error.
 * @throws MusterError malformed_json, with the JSON pointer, line, and column of each error if known
 */
export function readJson(body: Buffer): unknown {
  if (body.length === 0) throw malformed('A body is required.', 'expected a JSON value');
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf)
    throw malformed('The body begins with a byte order mark.', 'must not have a byte order mark');
  if (!isUtf8(body)) throw malformed('The body is not UTF-8.', 'must be UTF-8');
  const text = body.toString('utf8');
  const written = keysWritten(text);
  if (written.separators > maxSeparators)
    throw malformed(
      'The body has too many fields or list items.',
      `must have at most ${maxSeparators / 2} fields, or ${maxSeparators} list items`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Omits the JavaScript engine's message, because it quotes the body, which may contain a secret.
    throw faulty(text, 'The body is not JSON.');
  }
  if (written.escaped) return readEscapedKeys(text);
  const survey = { keys: 0, sound: true, checkText: text.includes('\\u') };
  walk(value, 1, survey);
  if (!survey.sound || survey.keys !== written.count) throw faulty(text, notTaken);
  return value;
}

const notTaken = 'The body is JSON with content that is not allowed.';

/**
 * Parses JSON text whose keys contain backslashes, without the JavaScript engine's parser. V8 13.6 parses the key
 * `"\""` as `\\` after it has parsed an object with the key `"\\"`.
 */
function readEscapedKeys(text: string): unknown {
  if (findFaults(text, maxDepth).length > 0) throw faulty(text, notTaken);
  return parseSlowly(text);
}

const malformed = (detail: string, message: string) =>
  new MusterError('malformed_json', detail, [{ path: '', message }]);

function faulty(text: string, detail: string): MusterError {
  const faults: Fault[] = findFaults(text, maxDepth);
  if (faults.length === 0) faults.push({ path: '', message: 'must be JSON' });
  const first = faults[0]!;
  const position = first.line === undefined ? '' : ` at line ${first.line}, column ${first.column}`;
  return new MusterError('malformed_json', `${detail.slice(0, -1)}: ${first.message}${position}.`, faults);
}

interface Survey {
  keys: number;
  sound: boolean;
  /**
   * Whether the body contains Unicode escapes. Without them, valid UTF-8 contains no lone surrogates, and JSON contains
   * no U+0000.
   */
  readonly checkText: boolean;
}

/** Counts the keys of a parsed value, and detects forbidden content. */
function walk(value: unknown, depth: number, survey: Survey): void {
  if (typeof value === 'string') {
    if (survey.checkText && (!value.isWellFormed() || value.includes('\u0000'))) survey.sound = false;
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if (depth > maxDepth) {
    survey.sound = false;
    return;
  }
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' || survey.checkText) walk(item, depth + 1, survey);
    return;
  }
  for (const key of Object.keys(value)) {
    survey.keys += 1;
    const item = (value as Record<string, unknown>)[key];
    if (key === '__proto__' || (key === 'constructor' && reachesPrototype(item))) survey.sound = false;
    if (survey.checkText && !key.isWellFormed()) survey.sound = false;
    if (typeof item === 'object' || survey.checkText) walk(item, depth + 1, survey);
  }
}

const reachesPrototype = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype');

/**
 * Counts the keys in a JSON text, by counting colons outside strings. If the parsed value has fewer keys, a key is
 * repeated.
 * @returns `separators`: colons and commas, counted only up to the maximum; `escaped`: whether a key contains a
 *   backslash
 */
function keysWritten(text: string): { count: number; separators: number; escaped: boolean } {
  let count = 0;
  let commas = 0;
  let escaped = false;
  let start = 0;
  let end = 0;
  for (let at = 0; at < text.length && count + commas <= maxSeparators; at++) {
    const char = text.charCodeAt(at);
    if (char === 44) commas += 1;
    else if (char === 58) {
      count += 1;
      // The last string before a colon is a key.
      escaped ||= hasBackslash(text, start, end);
    } else if (char === 34) {
      start = at;
      at = endOfString(text, at);
      end = at;
    }
  }
  return { count, separators: count + commas, escaped };
}

function hasBackslash(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (text.charCodeAt(at) === 92) return true;
  return false;
}
