import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { stringify } from 'yaml';
import type { Json } from '../../document.ts';
import type { Meter } from '../meter.ts';
import { ExpressionError, fromCel, maximumOutput, textOf } from '../values.ts';
import { format } from './format.ts';
import type { ExpressionFunction } from './function.ts';
import { compiledPattern, hasMatch, isCompiled, maximumPattern, statesOf } from './patterns.ts';
import { splitText } from './search.ts';

const encoder = new TextEncoder();
const bytesOf = (value: string | Uint8Array): Uint8Array => (typeof value === 'string' ? encoder.encode(value) : value);

function base64(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Returns the length of a path without its trailing slashes. */
function endOf(path: string): number {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end--;
  return end;
}

const lastSlash = (path: string, end: number): number => (end === 0 ? -1 : path.lastIndexOf('/', end - 1));

function basename(path: string): string {
  const end = endOf(path);
  return path.slice(lastSlash(path, end) + 1, end);
}

function dirname(path: string): string {
  const parent = path.slice(0, Math.max(0, lastSlash(path, endOf(path))));
  return parent === '' ? (path.startsWith('/') ? '/' : '.') : parent;
}

function replace(meter: Meter, text: string, old: string, by: string, limit = -1n): string {
  // As in CEL, an empty text occurs before, between, and after all characters.
  const pieces = old === '' ? ['', ...text, ''] : splitText(meter, text, old);
  const count = limit < 0n ? pieces.length - 1 : Math.min(Number(limit), pieces.length - 1);
  if (text.length + count * by.length > maximumOutput)
    throw new ExpressionError('replace yields more than 1 MiB: shorten the text');
  return [pieces.slice(0, count + 1).join(by), ...pieces.slice(count + 1)].join(old);
}

function matches(meter: Meter, text: string, pattern: string): boolean {
  if (pattern.length > maximumPattern)
    throw new ExpressionError(`a regular expression has at most ${maximumPattern} characters`);
  const states = statesOf(pattern);
  meter.spend(100 + Math.ceil((states * (text.length + 1)) / 4));
  if (!isCompiled(pattern)) meter.spend(states * 4);
  const compiled = compiledPattern(pattern);
  if (compiled === null) throw new ExpressionError(`${JSON.stringify(pattern)} is not an RE2 regular expression`);
  return hasMatch(compiled, text);
}

function indented(json: Json, indent: number): string {
  // The indentation grows with the square of the depth.
  let left = indent > 0 ? maximumOutput : Number.POSITIVE_INFINITY;
  const count = (value: Json, depth: number): void => {
    left -= indent * depth;
    if (left < 0) throw new ExpressionError('json yields more than 1 MiB: shorten the value or its indent');
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) count(item, depth + 1);
  };
  count(json, 0);
  return JSON.stringify(json, undefined, indent);
}

// A hyphen has no meaning outside of brackets, and some engines refuse `\-` there.
const special = /[.*+?^${}()|[\]\\/]/g;

export const textFunctions: readonly ExpressionFunction[] = [
  {
    name: 'basename',
    form: 'basename(path)',
    signatures: ['basename(string): string'],
    about: 'The last part of a path.',
    examples: [['basename("/etc/nginx/nginx.conf")', '"nginx.conf"']],
    call: (_, path: string) => basename(path),
  },
  {
    name: 'dirname',
    form: 'dirname(path)',
    signatures: ['dirname(string): string'],
    about: 'The path without its last part.',
    examples: [['dirname("/etc/nginx/nginx.conf")', '"/etc/nginx"']],
    call: (_, path: string) => dirname(path),
  },
  {
    name: 'replace',
    form: 'text.replace(old, new)',
    signatures: [
      'replace(string, string, string): string',
      'string.replace(string, string): string',
      'string.replace(string, string, int): string',
    ],
    about: 'The text with `new` for each `old`; a third argument limits how many are replaced.',
    examples: [
      ['"a.b.c".replace(".", "-")', '"a-b-c"'],
      ['"a.b.c".replace(".", "-", 1)', '"a-b.c"'],
    ],
    call: replace,
  },
  {
    name: 'charAt',
    form: 'text.charAt(index)',
    signatures: ['string.charAt(int): string'],
    about: 'The character at an index, which starts at 0.',
    examples: [['"abc".charAt(1)', '"b"']],
    call: (_, text: string, index: bigint) => {
      if (index < 0n || index > BigInt(text.length)) throw new ExpressionError('charAt: the index is outside the text');
      return text.charAt(Number(index));
    },
  },
  {
    name: 'reverse',
    form: 'text.reverse()',
    signatures: ['string.reverse(): string'],
    about: 'The characters of a text in reverse.',
    examples: [['"abc".reverse()', '"cba"']],
    call: (_, text: string) => [...text].reverse().join(''),
  },
  {
    name: 'format',
    form: 'text.format(values)',
    signatures: ['string.format(list): string', 'format(string, list): string'],
    about:
      'Formats the text: replaces `%s`, `%d`, `%f` (`%.2f`), `%e`, `%x`, `%X`, `%o`, and `%b` with the values, and `%%` with a percent sign.',
    examples: [['"%s:%d".format(["host", 80])', '"host:80"']],
    call: (meter, text: string, values: readonly unknown[]) => {
      meter.spend(10);
      return format(text, values);
    },
  },
  {
    name: 'matches',
    form: 'text.matches(pattern)',
    signatures: ['matches(string, string): bool', 'string.matches_(string): bool'],
    about: 'Whether a part of the text matches an RE2 regular expression, which has no backreferences or lookaround.',
    examples: [['"web-12".matches("^web-[0-9]+$")', 'true']],
    call: matches,
  },
  {
    name: 'regexEscape',
    form: 'regexEscape(text)',
    signatures: ['regexEscape(string): string'],
    about: 'A regular expression that matches exactly this text.',
    examples: [['regexEscape("a-b.c")', '"a-b\\\\.c"']],
    call: (_, text: string) => text.replace(special, '\\$&'),
  },
  {
    name: 'shellQuote',
    form: 'shellQuote(text)',
    signatures: ['shellQuote(dyn): string'],
    about: 'The text as one word of a POSIX shell. A list becomes several words.',
    examples: [
      ['shellQuote("it\'s")', "\"'it'\\\\''s'\""],
      ['["a b", "c"] | shellQuote', "\"'a b' 'c'\""],
    ],
    call: (_, value: unknown) =>
      (Array.isArray(value) ? value : [value])
        .map((item) => {
          const text = textOf(item);
          if (text === undefined) throw new ExpressionError('shellQuote takes a text or a list of texts');
          if (text.includes('\0'))
            throw new ExpressionError('shellQuote: the text contains NUL, which no word of a shell can contain');
          return `'${text.replaceAll("'", "'\\''")}'`;
        })
        .join(' '),
  },
  {
    name: 'base64',
    form: 'base64(text)',
    signatures: ['base64(string): string', 'base64(bytes): string'],
    about: 'The UTF-8 bytes of a text, or bytes, in Base64.',
    examples: [['base64("muster")', '"bXVzdGVy"']],
    call: (_, value: string | Uint8Array) => base64(bytesOf(value)),
  },
  {
    name: 'sha256',
    form: 'sha256(text)',
    signatures: ['sha256(string): string', 'sha256(bytes): string'],
    about: 'The SHA-256 of the UTF-8 bytes of a text, or of bytes, in hexadecimal.',
    examples: [['sha256("").substring(0, 8)', '"e3b0c442"']],
    call: (meter, value: string | Uint8Array) => {
      const bytes = bytesOf(value);
      meter.spend(100 + (bytes.length >> 2));
      return bytesToHex(sha256(bytes));
    },
  },
  {
    name: 'json',
    form: 'json(value, indent)',
    signatures: ['json(dyn): string', 'json(dyn, int): string'],
    about: 'The value as JSON. `indent` is the number of spaces per level; without it, the JSON is one line.',
    examples: [['json({"a": [1, true]})', '"{\\"a\\":[1,true]}"']],
    call: (_, value: unknown, indent = 0n) => indented(fromCel(value), Math.min(8, Number(indent))),
  },
  {
    name: 'yaml',
    form: 'yaml(value)',
    signatures: ['yaml(dyn): string'],
    about: 'The value as YAML, with a line break at the end.',
    examples: [['yaml({"a": ["b"]})', '"a:\\n  - b\\n"']],
    call: (meter, value: unknown) => {
      const json = fromCel(value);
      meter.spend(300 + 4 * JSON.stringify(json).length);
      return stringify(json);
    },
  },
];
